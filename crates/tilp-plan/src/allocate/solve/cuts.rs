//! Choosing one of a few options per terminal by coordinate descent.

/// A choice for every terminal that can tell what one more change would be worth.
pub trait Board {
    /// Value of the whole choice if this terminal took this option.
    fn value(&self, terminal: usize, option: usize) -> f64;
    /// Gives the terminal this option.
    fn take(&mut self, terminal: usize, option: usize);
}

/// Goes round the terminals, giving each the option with which the whole choice is worth least,
/// until none moves. `options` lists what each may choose; `least` is the value at the start.
pub fn descend(board: &mut impl Board, options: &[Vec<usize>], mut least: f64) -> f64 {
    // Every pass but the last lowers the value; the bound is for values that are not numbers.
    for _ in 0..100 {
        let before = least;
        for (terminal, options) in options.iter().enumerate() {
            for &option in options {
                let value = board.value(terminal, option);
                if value < least {
                    least = value;
                    board.take(terminal, option);
                }
            }
        }
        if least >= before || least.is_nan() {
            break;
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Separable {
        costs: [[f64; 3]; 3],
        choice: [usize; 3],
    }

    impl Separable {
        fn total(&self, choice: [usize; 3]) -> f64 {
            choice.iter().zip(&self.costs).map(|(&option, row)| row[option]).sum()
        }
    }

    impl Board for Separable {
        fn value(&self, terminal: usize, option: usize) -> f64 {
            let mut choice = self.choice;
            choice[terminal] = option;
            self.total(choice)
        }

        fn take(&mut self, terminal: usize, option: usize) {
            self.choice[terminal] = option;
        }
    }

    #[test]
    fn a_separable_value_is_solved_exactly() {
        let costs = [[3.0, 1.0, 2.0], [0.5, 4.0, 0.1], [7.0, 8.0, 9.0]];
        let mut board = Separable { costs, choice: [2, 1, 2] };
        let options = vec![vec![0, 1, 2], vec![0, 1], vec![0, 1, 2]];
        let start = board.total(board.choice);
        let least = descend(&mut board, &options, start);
        assert_eq!(board.choice, [1, 0, 0]);
        assert_eq!(least, 8.5);
    }
}
