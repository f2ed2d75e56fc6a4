//! When bytes leave: a token bucket for each direction of a link, as arithmetic over a given time.
//!
//! A bucket fills with the rate of the link up to its burst. A piece of data leaves when as many
//! bytes as it has are in the bucket. A piece that will be ready within a short horizon is let go
//! at once with its exact time, and the bucket is overdrawn: timers that fire late then cost no
//! rate.

use tilp_core::cost::Grant;

use super::link::{Direction, Link};

/// How far ahead a piece may be timed, in seconds.
const HORIZON_S: f64 = 0.01;

/// What to do with a piece of data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// It arrives at the other end at this time.
    Deliver(f64),
    /// Ask again at this time, or when something about the link was changed.
    Wait(Option<f64>),
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Bytes in the bucket; below zero if it is overdrawn.
    level: f64,
    /// Bytes of the piece that waits.
    waiting: f64,
    /// Time up to which it was filled.
    at_s: f64,
    /// Latest delivery so far: bytes do not overtake each other.
    delivered_s: f64,
}

/// Both directions of a terminal's link.
#[derive(Clone, Debug)]
pub struct Shaper {
    link: Link,
    burst: f64,
    buckets: [Bucket; 2],
}

impl Shaper {
    /// A shaper with full buckets of this size.
    pub fn new(link: Link, burst_bytes: u32) -> Self {
        let burst = f64::from(burst_bytes);
        let full = Bucket { level: burst, waiting: 0.0, at_s: 0.0, delivered_s: 0.0 };
        Self { link, burst, buckets: [full; 2] }
    }

    /// The link.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Asks for a piece of `n_bytes` that is there now. The same piece is asked for until it is
    /// delivered.
    pub fn ask(&mut self, direction: Direction, now_s: f64, n_bytes: usize) -> Verdict {
        let wanted = n_bytes as f64;
        // Silence before the piece fills up to the burst only; a piece that waits fills further.
        self.fill(direction, now_s);
        self.bucket(direction).waiting = wanted;
        let rate = self.link.rate(direction, now_s).0 / 8.0;
        let next = self.link.next_change(now_s);
        let missing = wanted - self.bucket(direction).level;
        let ready_s = match missing > 0.0 {
            true if rate > 0.0 => now_s + missing / rate,
            true => f64::INFINITY,
            false => now_s,
        };
        let changes_before = next.is_some_and(|next| next < ready_s);
        if changes_before || ready_s > now_s + HORIZON_S {
            // Half the horizon early: a timer that fires late is still in time.
            let early = ready_s - 0.5 * HORIZON_S;
            let until = next.filter(|_| changes_before).unwrap_or(early);
            return Verdict::Wait(until.is_finite().then_some(until));
        }
        let delay = self.link.delay(now_s).0;
        let bucket = self.bucket(direction);
        bucket.level -= wanted;
        bucket.waiting = 0.0;
        bucket.delivered_s = bucket.delivered_s.max(ready_s + delay);
        Verdict::Deliver(bucket.delivered_s)
    }

    /// Grants band and power from now on, or nothing.
    pub fn grant(&mut self, now_s: f64, grant: Option<Grant>) {
        self.fill_both(now_s);
        self.link.set_grant(grant);
    }

    /// Moves on to a round.
    pub fn round(&mut self, now_s: f64, round: u64) {
        self.fill_both(now_s);
        self.link.set_round(round);
    }

    /// Starts or ends an outage.
    pub fn outage(&mut self, now_s: f64, outage: bool) {
        self.fill_both(now_s);
        self.link.set_outage(outage);
    }

    fn bucket(&mut self, direction: Direction) -> &mut Bucket {
        &mut self.buckets[usize::from(direction == Direction::Down)]
    }

    fn fill_both(&mut self, now_s: f64) {
        self.fill(Direction::Up, now_s);
        self.fill(Direction::Down, now_s);
    }

    /// Fills a bucket up to now with every rate that held in between.
    fn fill(&mut self, direction: Direction, now_s: f64) {
        let mut bucket = *self.bucket(direction);
        while bucket.at_s < now_s {
            let most = self.burst.max(bucket.waiting);
            let end = self.link.next_change(bucket.at_s).map_or(now_s, |next| next.min(now_s));
            let bytes = self.link.rate(direction, bucket.at_s).0 / 8.0 * (end - bucket.at_s);
            bucket.level = (bucket.level + bytes).min(most);
            bucket.at_s = end;
            // A full bucket stays full; long silences are not walked step by step.
            if bucket.level >= most {
                bucket.at_s = now_s;
            }
        }
        *self.bucket(direction) = bucket;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::channel::{Conditions, Quality, ReplayedChannel};
    use crate::proxy::link::{LinkSettings, Pace};
    use tilp_core::cost::Downlink;
    use tilp_core::units::{BitsPerSecond, Seconds};
    use tilp_core::wireless::RateModel;

    /// A link with these rates in bytes a second, each for a second; zero is an outage.
    fn shaper(rates: &[f64], delay_s: f64, burst: u32) -> Shaper {
        let row = |rate: &f64| {
            let quality = Quality::Rate(BitsPerSecond(8.0 * rate));
            vec![Conditions { quality, delay: Seconds(delay_s), outage: *rate == 0.0 }]
        };
        let rows: Vec<_> = rates.iter().map(row).collect();
        let channel = ReplayedChannel::from_rows(&rows, Seconds(1.0)).unwrap();
        let settings = LinkSettings {
            pace: Pace::Clock,
            model: RateModel::Held,
            downlink: Downlink::Shared,
            signalling: BitsPerSecond(0.0),
        };
        Shaper::new(Link::new(&channel, 0, settings), burst)
    }

    /// Sends pieces that are all there at `start_s`; a timer fires `late_s` after it should.
    fn send(shaper: &mut Shaper, start_s: f64, pieces: &[usize], late_s: f64) -> Vec<f64> {
        let mut now_s = start_s;
        let mut delivered = Vec::new();
        for &piece in pieces {
            for turn in 0.. {
                assert!(turn < 100, "a piece never leaves");
                match shaper.ask(Direction::Up, now_s, piece) {
                    Verdict::Deliver(at_s) => {
                        delivered.push(at_s);
                        break;
                    }
                    Verdict::Wait(until) => now_s = now_s.max(until.unwrap() + late_s),
                }
            }
        }
        delivered
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
    }

    #[test]
    fn bytes_arrive_at_the_rate_of_the_link_and_after_its_delay() {
        let mut shaper = shaper(&[1000.0], 0.25, 0);
        let delivered = send(&mut shaper, 0.0, &[100, 100, 300], 0.0);
        near(delivered[0], 0.1 + 0.25);
        near(delivered[1], 0.2 + 0.25);
        near(delivered[2], 0.5 + 0.25);
    }

    #[test]
    fn timers_that_fire_late_within_the_horizon_cost_no_rate() {
        let pieces = [100; 50];
        let punctual = send(&mut shaper(&[1e5], 0.0, 0), 0.0, &pieces, 0.0);
        let late = send(&mut shaper(&[1e5], 0.0, 0), 0.0, &pieces, 0.004);
        near(punctual[49], 5000.0 / 1e5);
        assert!((late[49] - punctual[49]).abs() < 0.005, "{late:?}");
    }

    #[test]
    fn a_change_of_rate_holds_from_its_time_on() {
        // 500 bytes in the first second, then 2000 a second.
        let mut shaper = shaper(&[500.0, 2000.0], 0.0, 0);
        near(send(&mut shaper, 0.0, &[1500], 0.0)[0], 1.5);
    }

    #[test]
    fn nothing_passes_during_an_outage() {
        let mut shaper = shaper(&[1000.0, 0.0, 0.0, 1000.0], 0.0, 0);
        near(send(&mut shaper, 0.5, &[700], 0.0)[0], 3.2);
    }

    #[test]
    fn a_silent_link_saves_up_a_burst_and_no_more() {
        let mut shaper = shaper(&[1000.0], 0.0, 200);
        let delivered = send(&mut shaper, 50.0, &[200, 100], 0.0);
        near(delivered[0], 50.0);
        near(delivered[1], 50.1);
    }

    #[test]
    fn directions_do_not_share_a_bucket() {
        let mut shaper = shaper(&[1000.0], 0.0, 100);
        assert_eq!(shaper.ask(Direction::Up, 0.0, 100), Verdict::Deliver(0.0));
        assert_eq!(shaper.ask(Direction::Down, 0.0, 100), Verdict::Deliver(0.0));
        assert!(matches!(shaper.ask(Direction::Up, 0.0, 100), Verdict::Wait(Some(_))));
    }

    #[test]
    fn a_link_without_rate_waits_for_the_control_channel() {
        let mut shaper = shaper(&[1000.0], 0.0, 0);
        shaper.outage(0.0, true);
        assert_eq!(shaper.ask(Direction::Up, 1.0, 10), Verdict::Wait(None));
        shaper.outage(2.0, false);
        // The bucket did not fill during the outage.
        near(send(&mut shaper, 2.0, &[10], 0.0)[0], 2.01);
    }

    #[test]
    fn a_shorter_delay_does_not_let_bytes_overtake() {
        let row = |delay: f64| {
            let quality = Quality::Rate(BitsPerSecond(8e6));
            vec![Conditions { quality, delay: Seconds(delay), outage: false }]
        };
        let channel = ReplayedChannel::from_rows(&[row(2.0), row(0.0)], Seconds(1.0)).unwrap();
        let settings = LinkSettings {
            pace: Pace::Clock,
            model: RateModel::Held,
            downlink: Downlink::Shared,
            signalling: BitsPerSecond(0.0),
        };
        let mut shaper = Shaper::new(Link::new(&channel, 0, settings), 100);
        assert_eq!(shaper.ask(Direction::Up, 0.9, 100), Verdict::Deliver(2.9));
        assert_eq!(shaper.ask(Direction::Up, 1.1, 100), Verdict::Deliver(2.9));
    }

    #[test]
    fn the_same_questions_get_the_same_answers() {
        let pieces: Vec<usize> = (1..200).map(|n| 37 * n % 400 + 1).collect();
        let run = || send(&mut shaper(&[900.0, 0.0, 1300.0], 0.01, 64), 0.3, &pieces, 0.0);
        let delivered = run();
        assert_eq!(delivered, run());
        assert!(delivered.windows(2).all(|pair| pair[0] <= pair[1]));
        // Two thirds of the time the link carries 1100 bytes a second on average.
        let (bytes, seconds) = (pieces.iter().sum::<usize>() as f64, delivered[198] - 0.3);
        assert!((bytes / seconds / (2200.0 / 3.0) - 1.0).abs() < 0.03, "{}", bytes / seconds);
    }
}
