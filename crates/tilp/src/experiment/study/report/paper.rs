//! The paper's own numbers, to stand beside ours: Tables II and III of Ding, Wu, Huang and Mao
//! (arXiv 2604.26105). They were measured on the authors' testbed, not here.

/// A row of the paper's tables. Rounds that were not reached are none.
pub struct Published {
    /// The method as we call it, or the point of our ablation.
    pub name: &'static str,
    /// Final success in percent.
    pub success: f64,
    /// Rounds to 60, 70 and 80 %.
    pub rta: [Option<u32>; 3],
    /// Mean latency in seconds.
    pub latency_s: f64,
    /// Energy over that of TiLP.
    pub energy: f64,
    /// Volume in gigabytes.
    pub volume_gb: f64,
    /// Mean violation.
    pub violation: f64,
}

const fn row(
    name: &'static str,
    success: f64,
    rta: [u32; 3],
    [latency_s, energy, volume_gb, violation]: [f64; 4],
) -> Published {
    let [a, b, c] = rta;
    let rta = [reached(a), reached(b), reached(c)];
    Published { name, success, rta, latency_s, energy, volume_gb, violation }
}

/// Zero stands for never.
const fn reached(round: u32) -> Option<u32> {
    if round == 0 { None } else { Some(round) }
}

/// Table II.
pub const MAIN: [Published; 9] = [
    row("fedavg", 55.5, [985, 0, 0], [23.40, 77.5, 9.12, 29.50]),
    row("splitnn", 58.1, [820, 0, 0], [20.15, 49.7, 7.85, 25.30]),
    row("splitfed", 61.8, [680, 0, 0], [18.90, 41.1, 6.95, 21.80]),
    row("adaptsfl", 64.6, [560, 0, 0], [18.25, 23.3, 5.80, 17.10]),
    row("ga-sfl", 67.4, [420, 0, 0], [16.05, 19.3, 5.22, 13.75]),
    row("hsfl", 68.0, [210, 0, 0], [7.34, 10.1, 2.08, 9.99]),
    row("asfl", 71.5, [120, 235, 0], [1.06, 1.28, 1.00, 4.06]),
    row("fedsl", 78.0, [220, 410, 0], [15.10, 14.9, 4.95, 12.83]),
    row("tilp", 87.5, [29, 68, 144], [0.10, 1.00, 0.42, 3.52]),
];

/// Table III, under the names of our ablations.
pub const ABLATIONS: [Published; 9] = [
    row("full", 87.5, [29, 68, 144], [0.10, 1.00, 0.42, 3.52]),
    row("no network calibration", 79.8, [47, 118, 0], [0.16, 1.21, 0.58, 5.84]),
    row("no training calibration", 74.6, [73, 267, 0], [0.21, 1.38, 0.71, 7.92]),
    row("no task calibration", 80.7, [42, 109, 348], [0.15, 1.17, 0.55, 5.41]),
    row("no actor", 82.1, [38, 94, 284], [0.13, 1.11, 0.51, 4.76]),
    row("no critic", 83.9, [34, 82, 231], [0.12, 1.07, 0.48, 4.21]),
    row("no CEM", 78.4, [54, 154, 0], [0.18, 1.26, 0.62, 6.37]),
    row("not task-driven", 71.2, [91, 378, 0], [0.24, 1.47, 0.79, 8.94]),
    row("no calibration", 64.3, [138, 0, 0], [0.34, 1.78, 1.03, 12.67]),
];

/// The paper's row of one of ours: by method without its variants in a comparison, by point in an
/// ablation.
pub fn published(question: &str, point: &str, method: &str) -> Option<&'static Published> {
    let plain = method.split('+').next().unwrap_or(method);
    match question {
        "compare" => MAIN.iter().find(|row| row.name == plain),
        "ablate" => ABLATIONS.iter().find(|row| row.name == point),
        _ => None,
    }
}
