//! A JSON schema as rows for people: every key with its type in words and its meaning.

use serde_json::Value;

/// A table of keys: a section of a scenario, or an object in a JSON file.
pub struct Section {
    /// The dotted key of the table; empty for the root.
    pub key: String,
    /// What it is.
    pub about: String,
    /// Its keys, the required ones first in the order of their definition.
    pub fields: Vec<Field>,
}

/// One key.
pub struct Field {
    /// Its dotted name from the root.
    pub key: String,
    /// Its own name.
    pub name: String,
    /// Its type in words.
    pub kind: String,
    /// Its meaning, that of its values included.
    pub about: String,
    /// What it is if it is not written; none if it must be.
    pub default: Option<Value>,
    /// Whether it must be written.
    pub is_required: bool,
}

/// The sections of a schema, a table before the tables in it.
pub fn sections(schema: &Value) -> Vec<Section> {
    let mut found = Vec::new();
    Reader { root: schema }.section("", schema, "", &mut found);
    found
}

struct Reader<'a> {
    root: &'a Value,
}

/// Text of a description in one line.
fn line(text: Option<&Value>) -> String {
    let text = text.and_then(Value::as_str).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl<'a> Reader<'a> {
    /// The schema behind references and behind "or null".
    fn plain(&self, schema: &'a Value) -> &'a Value {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.trim_start_matches("#/$defs/");
            return self.plain(&self.root["$defs"][name]);
        }
        let is_null = |one: &&Value| one["type"] == "null";
        match schema["anyOf"].as_array() {
            Some(either) if either.iter().any(|one| is_null(&one)) => {
                self.plain(either.iter().find(|one| !is_null(one)).expect("something but null"))
            }
            _ => schema,
        }
    }

    /// The object that a key holds, with the ending of its key: itself, those of a list, or those
    /// under names of the user's choice.
    fn object(&self, schema: &'a Value) -> Option<(&'static str, &'a Value)> {
        let plain = self.plain(schema);
        if plain["properties"].is_object() {
            return Some(("", plain));
        }
        if plain["items"].is_object() {
            return self.object(&plain["items"]).map(|(_, object)| ("[]", object));
        }
        if plain["additionalProperties"].is_object() {
            let below = &plain["additionalProperties"];
            return self.object(below).map(|(_, object)| (".NAME", object));
        }
        None
    }

    fn section(&self, key: &str, schema: &'a Value, about: &str, found: &mut Vec<Section>) {
        let properties = schema["properties"].as_object().expect("an object");
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut names: Vec<&String> = properties.keys().collect();
        let place = |name: &str| required.iter().position(|one| *one == name);
        names.sort_by_key(|name| place(name).unwrap_or(usize::MAX));
        let own = line(schema.get("description"));
        let about = if own.is_empty() { about.to_owned() } else { own };
        let mut section = Section { key: key.to_owned(), about, fields: Vec::new() };
        let mut below: Vec<(String, &Value, String)> = Vec::new();
        for name in names {
            let schema = &properties[name];
            let full = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            let about = line(schema.get("description"));
            if let Some((ending, object)) = self.object(schema) {
                below.push((format!("{full}{ending}"), object, about.clone()));
            }
            section.fields.push(Field {
                key: full,
                name: name.clone(),
                kind: self.kind(schema),
                about: (about + &self.values(schema)).trim().to_owned(),
                default: schema.get("default").cloned(),
                is_required: required.contains(&name.as_str()),
            });
        }
        found.push(section);
        for (key, object, about) in below {
            self.section(&key, object, &about, found);
        }
    }

    /// What each value of an enumeration means.
    fn values(&self, schema: &'a Value) -> String {
        let plain = self.plain(schema);
        let of = if plain["items"].is_object() { self.plain(&plain["items"]) } else { plain };
        let one = |value: &Value| {
            let name = value["const"].as_str()?;
            Some(format!(" `{name}`: {}", line(value.get("description"))))
        };
        of["oneOf"].as_array().into_iter().flatten().filter_map(one).collect()
    }

    /// The type in words.
    pub fn kind(&self, schema: &'a Value) -> String {
        let plain = self.plain(schema);
        let words = self.plain_kind(plain);
        let types = plain["type"].as_array();
        let or_null = |schema: &Value| {
            schema["anyOf"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one["type"] == "null"))
        };
        let may_be_null =
            types.is_some_and(|all| all.iter().any(|one| one == "null")) || or_null(schema);
        if may_be_null { format!("{words}, or nothing") } else { words }
    }

    fn plain_kind(&self, schema: &'a Value) -> String {
        if let Some(name) = schema["const"].as_str() {
            return format!("`{name}`");
        }
        let choices = schema["enum"].as_array().or(schema["oneOf"].as_array());
        let choices = choices.or(schema["anyOf"].as_array());
        if let Some(choices) = choices {
            let one = |choice: &'a Value| match choice {
                Value::String(name) => format!("`{name}`"),
                _ if choice["properties"].is_object() => self.braces(choice),
                _ => self.kind(choice),
            };
            let choices: Vec<String> = choices.iter().map(one).collect();
            return choices.join(" or ");
        }
        let named = schema["type"].as_str().or_else(|| {
            let all = schema["type"].as_array()?;
            all.iter().filter_map(Value::as_str).find(|one| *one != "null")
        });
        match named {
            Some("integer") => "whole number".into(),
            Some("number") => "number".into(),
            Some("boolean") => "true or false".into(),
            Some("string") => "text".into(),
            Some("array") => self.list(schema),
            Some("object") if schema["additionalProperties"].is_object() => {
                format!("table of {}", self.kind(&schema["additionalProperties"]))
            }
            _ => "table".into(),
        }
    }

    fn list(&self, schema: &'a Value) -> String {
        if let Some(parts) = schema["prefixItems"].as_array() {
            let parts: Vec<String> = parts.iter().map(|one| self.kind(one)).collect();
            return format!("[{}]", parts.join(", "));
        }
        let of = self.kind(&schema["items"]);
        match schema["minItems"].as_u64().filter(|least| schema["maxItems"] == *least) {
            Some(2) => format!("two {of}s"),
            Some(n) => format!("{n} {of}s"),
            None => format!("list: {of}"),
        }
    }

    /// An inline table.
    fn braces(&self, schema: &'a Value) -> String {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let parts: Vec<String> =
            properties.map(|(name, one)| format!("{name} = {}", self.kind(one))).collect();
        format!("{{ {} }}", parts.join(", "))
    }
}

/// The variants of a tagged enumeration: the value of the tag, and the rest as sections.
pub fn variants(schema: &Value, tag: &str) -> Vec<(String, Vec<Section>)> {
    let variant = |one: &Value| {
        let mut one = one.clone();
        let name = one["properties"][tag]["const"].as_str().expect("a tag").to_owned();
        one["$defs"] = schema["$defs"].clone();
        // A variant that holds a struct refers to it beside its tag.
        if let Some(reference) = one["$ref"].as_str() {
            let of = one["$defs"][reference.trim_start_matches("#/$defs/")].clone();
            for part in ["properties", "required"] {
                merge(&mut one[part], &of[part]);
            }
        }
        (name, sections(&one))
    };
    schema["oneOf"].as_array().expect("variants").iter().map(variant).collect()
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            from.iter().for_each(|(name, one)| drop(into.insert(name.clone(), one.clone())));
        }
        (Value::Array(into), Value::Array(from)) => into.extend(from.iter().cloned()),
        _ => {}
    }
}

/// The unit that the name of a quantity ends in.
pub fn unit(name: &str) -> &'static str {
    const UNITS: [(&str, &str); 16] = [
        ("_dbm_per_hz", "dBm/Hz"),
        ("_db", "dB"),
        ("_hz", "Hz"),
        ("_ms", "ms"),
        ("_m", "m"),
        ("_s", "s"),
        ("_w", "W"),
        ("_j", "J"),
        ("_kg", "kg"),
        ("_rad", "rad"),
        ("_deg", "degrees"),
        ("_bps", "bit/s"),
        ("_bytes", "bytes"),
        ("_rounds", "rounds"),
        ("_bits", "bits"),
        ("_steps", "steps"),
    ];
    let ends = |(ending, _): &&(&str, &str)| name.ends_with(ending) || name == &ending[1..];
    UNITS.iter().find(ends).map_or("", |(_, unit)| unit)
}

/// Text that stands in a cell of a Markdown table.
pub fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
