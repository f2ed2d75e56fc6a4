// What must hold of grafana.json, in the types that Grafana publishes of its own format. ./check compiles
// this together with the dashboard as a constant: unknown fields and values are errors.

import type * as grafana from "@grafana/schema";
import type { Dashboard } from "./node_modules/@grafana/schema/dist/types/veneer/dashboard.types";
import type { Options } from "./node_modules/@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/types.gen";

// In JSON the values of an enumeration are texts and numbers.
type Plain<T> = T extends string ? `${T}`
  : T extends number ? (number extends T ? number : `${T}` extends `${infer N extends number}` ? N : T)
  : T extends boolean | null | undefined ? T
  : T extends (infer E)[] ? Plain<E>[]
  : T extends object ? { [K in keyof T]: Plain<T[K]> }
  : T;

// A query of the data source Prometheus; its type is not published.
interface Target {
  refId: string;
  datasource: Plain<grafana.DataSourceRef>;
  expr: string;
  legendFormat: string;
}

type FieldConfig = NonNullable<grafana.Panel["fieldConfig"]>;

interface TimeSeries extends Plain<Omit<grafana.Panel, "type" | "options" | "fieldConfig" | "targets">> {
  type: "timeseries";
  options: Plain<Options>;
  fieldConfig: { defaults: Plain<Omit<FieldConfig["defaults"], "custom">> & { custom: Plain<grafana.GraphFieldConfig> }; overrides: [] };
  targets: Target[];
}

export type Checked = Omit<Plain<Dashboard>, "panels"> & { panels: TimeSeries[] };
