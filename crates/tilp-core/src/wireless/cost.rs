//! Delay and energy of one terminal in one round.

use crate::units::{Bits, BitsPerSecond, Hertz, Joules, Operations, Seconds, Watts};

/// One-way transmission delay of a payload.
///
/// $$ \delta^{tx}_n = K_n \psi(\ell_n)(1-q_n) / R_n $$
///
/// The payload is what is really encoded; with nominal accounting the caller passes
/// K psi (1-q).
///
/// Eq. `sys-T`
pub fn transmission_delay(payload: Bits, rate: BitsPerSecond) -> Seconds {
    if payload.0 == 0.0 {
        return Seconds(0.0); // nothing to send takes no time, even on a dead link
    }
    payload / rate
}

/// On-device computation delay.
///
/// $$ \delta^{cp}_n = K_n \varphi(\ell_n) / (\nu_n g_n) $$
///
/// Eq. `sys-Tp`
pub fn computation_delay(work: Operations, operations_per_cycle: f64, clock: Hertz) -> Seconds {
    Seconds(work.0 / (operations_per_cycle * clock.0))
}

/// Completion time of a round: the slowest of the terminals involved.
///
/// $$ \delta = \max_n (\delta^{cp}_n + 2 \delta^{tx}_n) $$
///
/// Eq. `sys-TC`
pub fn round_delay(delays: impl Iterator<Item = Seconds>) -> Seconds {
    delays.fold(Seconds(0.0), Seconds::max)
}

/// Energy of one terminal, computation and radio apart.
///
/// $$ E_n = \kappa_n g_n^2 K_n \varphi(\ell_n) + p_n \delta^{tx}_n $$
///
/// `energy_coefficient` is kappa_n in J s^2 per operation.
///
/// Eq. `sys-E`
pub fn energy(
    work: Operations,
    energy_coefficient: f64,
    clock: Hertz,
    power: Watts,
    sending: Seconds,
) -> (Joules, Joules) {
    (Joules(energy_coefficient * clock.0 * clock.0 * work.0), power * sending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eq_sys_t_is_payload_over_rate_and_infinite_on_a_dead_link() {
        assert_eq!(transmission_delay(Bits(1e6), BitsPerSecond(2e6)), Seconds(0.5));
        assert_eq!(transmission_delay(Bits(1.0), BitsPerSecond(0.0)), Seconds(f64::INFINITY));
        assert_eq!(transmission_delay(Bits(0.0), BitsPerSecond(0.0)), Seconds(0.0));
    }

    #[test]
    fn eq_sys_tp_halves_when_the_processor_does_twice_as_much_a_cycle() {
        let work = Operations(3e9);
        assert_eq!(computation_delay(work, 1.0, Hertz(1.5e9)), Seconds(2.0));
        assert_eq!(computation_delay(work, 2.0, Hertz(1.5e9)), Seconds(1.0));
    }

    #[test]
    fn eq_sys_tc_is_the_slowest_and_zero_for_nobody() {
        assert_eq!(round_delay([1.0, 3.0, 2.0].map(Seconds).into_iter()), Seconds(3.0));
        assert_eq!(round_delay(std::iter::empty()), Seconds(0.0));
    }

    #[test]
    fn eq_sys_e_equals_a_hand_calculation() {
        let (compute, radio) =
            energy(Operations(1e8), 1e-28, Hertz(1.5e9), Watts(0.2), Seconds(0.5));
        assert!((compute.0 - 0.0225).abs() < 1e-12);
        assert_eq!(radio, Joules(0.1));
    }
}
