//! Quantities with a unit. SI and linear throughout; only physical products have an operator.
//!
//! Newtypes are used at the boundaries between modules; inside a formula plain `f64` with a unit
//! suffix is used.

use std::ops;

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
        pub struct $name(pub f64);

        impl ops::Add for $name {
            type Output = Self;
            fn add(self, rhs: Self) -> Self {
                Self(self.0 + rhs.0)
            }
        }

        impl ops::AddAssign for $name {
            fn add_assign(&mut self, rhs: Self) {
                self.0 += rhs.0;
            }
        }

        impl ops::Sub for $name {
            type Output = Self;
            fn sub(self, rhs: Self) -> Self {
                Self(self.0 - rhs.0)
            }
        }

        impl ops::Mul<f64> for $name {
            type Output = Self;
            fn mul(self, rhs: f64) -> Self {
                Self(self.0 * rhs)
            }
        }

        impl ops::Div<f64> for $name {
            type Output = Self;
            fn div(self, rhs: f64) -> Self {
                Self(self.0 / rhs)
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                Self(items.map(|item| item.0).sum())
            }
        }

        impl $name {
            /// The larger of the two.
            pub fn max(self, other: Self) -> Self {
                Self(self.0.max(other.0))
            }

            /// The smaller of the two.
            pub fn min(self, other: Self) -> Self {
                Self(self.0.min(other.0))
            }
        }
    };
}

quantity!(
    /// Frequency or bandwidth.
    Hertz
);
quantity!(
    /// Power.
    Watts
);
quantity!(
    /// Time.
    Seconds
);
quantity!(
    /// Energy.
    Joules
);
quantity!(
    /// Amount of data.
    Bits
);
quantity!(
    /// Data rate.
    BitsPerSecond
);
quantity!(
    /// Arithmetic operations (one multiply-add counts two).
    Operations
);

/// Memory or message size in whole bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// Linear power gain of a channel (a path loss of 100 dB is a gain of 1e-10).
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Gain(pub f64);

impl Gain {
    /// The gain of a loss given in decibels.
    pub fn from_loss_db(loss_db: f64) -> Self {
        Self(from_db(-loss_db))
    }

    /// The loss in decibels.
    pub fn loss_db(self) -> f64 {
        -to_db(self.0)
    }
}

impl Bits {
    /// The bits of a message of whole bytes.
    pub fn from_bytes(bytes: Bytes) -> Self {
        Self(bytes.0 as f64 * 8.0)
    }
}

impl ops::Add for Bytes {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0 + rhs.0)
    }
}

impl ops::AddAssign for Bytes {
    fn add_assign(&mut self, rhs: Self) {
        self.0 += rhs.0;
    }
}

impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        Self(items.map(|item| item.0).sum())
    }
}

impl ops::Div<BitsPerSecond> for Bits {
    type Output = Seconds;
    fn div(self, rhs: BitsPerSecond) -> Seconds {
        Seconds(self.0 / rhs.0)
    }
}

impl ops::Mul<Seconds> for Watts {
    type Output = Joules;
    fn mul(self, rhs: Seconds) -> Joules {
        Joules(self.0 * rhs.0)
    }
}

/// Decibels to a linear ratio.
pub fn from_db(db: f64) -> f64 {
    10f64.powf(db / 10.0)
}

/// A linear ratio to decibels.
pub fn to_db(ratio: f64) -> f64 {
    10.0 * ratio.log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_of_100_db_is_a_gain_of_1e_minus_10() {
        assert!((Gain::from_loss_db(100.0).0 - 1e-10).abs() < 1e-24);
        assert!((Gain(1e-10).loss_db() - 100.0).abs() < 1e-12);
    }

    #[test]
    fn a_message_of_125_bytes_takes_one_second_at_a_kilobit_per_second() {
        assert_eq!(Bits::from_bytes(Bytes(125)) / BitsPerSecond(1000.0), Seconds(1.0));
    }

    #[test]
    fn two_watts_for_three_seconds_are_six_joules() {
        assert_eq!(Watts(2.0) * Seconds(3.0), Joules(6.0));
    }
}
