//! `tilp proxy`.

use std::path::Path;
use std::time::Duration;

use tilp::cost::Downlink;
use tilp::scenario::{Scenario, read_recording, true_channel};
use tilp::units::{BitsPerSecond, Seconds, from_db};
use tilp::wireless::RateModel;
use tilp_testbed::proxy::{
    Conditions, LinkSettings, Pace, Proxy as Bound, ProxySettings, Quality, ReplayedChannel,
};

use crate::arguments::{Advance, Proxy};
use crate::failure::Failure;
use crate::output;
use crate::signals::Signals;

/// Most bytes of a table that is read.
const MAX_TABLE_BYTES: u64 = 256 << 20;
/// Interval at which the program checks for signals.
const POLL: Duration = Duration::from_millis(50);

/// Forwards data between terminals and server until a signal stops it.
pub(crate) fn proxy(arguments: Proxy) -> Result<(), Failure> {
    let (channel, model, downlink) = read_channel(&arguments)?;
    if !(0.0..=1e11).contains(&arguments.signalling_bps) {
        let value = arguments.signalling_bps;
        return Err(Failure::input(format!("--signalling-bps = {value}, expected 0 to 1e11")));
    }
    let settings = ProxySettings {
        server: arguments.server,
        listen: arguments.listen,
        control: arguments.control.clone(),
        channel,
        link: LinkSettings {
            pace: match arguments.advance {
                Advance::Clock => Pace::Clock,
                Advance::Rounds => Pace::Rounds,
            },
            model,
            downlink,
            signalling: BitsPerSecond(arguments.signalling_bps),
        },
        burst_bytes: arguments.burst_bytes,
    };
    let signals = Signals::listen().map_err(Failure::failed)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(Failure::failed)?.block_on(serve(settings, &arguments, &signals))?;
    Err(Failure::signal(signals.asked().unwrap_or_default(), "stopped"))
}

async fn serve(
    settings: ProxySettings,
    arguments: &Proxy,
    signals: &Signals,
) -> Result<(), Failure> {
    let taken = |error| Failure::input(format!("cannot listen: {error}"));
    let bound = Bound::bind(settings).await.map_err(taken)?;
    let addresses = bound.addresses().map_err(Failure::failed)?;
    for (terminal, address) in addresses.iter().enumerate() {
        let server = arguments.server;
        output::print(&format!("terminal {terminal} at {address}, passed on to {server}"))?;
    }
    let stop = async {
        while signals.asked().is_none() {
            tokio::time::sleep(POLL).await;
        }
    };
    bound.run(stop).await;
    Ok(())
}

/// The channel for a name, with its rates where they are known.
fn read_channel(arguments: &Proxy) -> Result<(ReplayedChannel, RateModel, Downlink), Failure> {
    let path = Path::new(&arguments.channel);
    let is_scenario = path.extension().is_some_and(|ending| ending == "toml") || !path.exists();
    if is_scenario {
        return of_scenario(arguments);
    }
    let (plain, shared) = (RateModel::Held, Downlink::Shared);
    let named =
        |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", arguments.channel));
    if let Some(text) = table_of_rates(path)? {
        let channel = ReplayedChannel::from_rates_csv(&text, arguments.period_s);
        return Ok((channel.map_err(|error| named(&error))?, plain, shared));
    }
    let recording = read_recording(path).map_err(|error| named(&error))?;
    // dBm to W: 30 dB less.
    let noise = from_db(arguments.noise_dbm_per_hz - 30.0);
    let (interval, delay) = (Seconds(arguments.period_s), Seconds(arguments.delay_s));
    let channel = ReplayedChannel::from_recording(&recording, interval, delay, noise);
    Ok((channel.map_err(|error| named(&error))?, plain, shared))
}

fn of_scenario(arguments: &Proxy) -> Result<(ReplayedChannel, RateModel, Downlink), Failure> {
    let scenario = Scenario::load(&arguments.channel, &arguments.overrides);
    let scenario = scenario.map_err(Failure::input)?;
    let truth = true_channel(&scenario, arguments.seed, scenario.rounds());
    let truth = truth.map_err(Failure::input)?;
    let delay = Seconds(arguments.delay_s);
    let row = |links: &Vec<tilp::scenario::TrueLink>| {
        let of = |link: &tilp::scenario::TrueLink| Conditions {
            quality: Quality::Air {
                gain: link.gain,
                fading_power: link.fading_power,
                noise_w_per_hz: link.noise_w_per_hz,
            },
            delay,
            outage: false,
        };
        links.iter().map(of).collect()
    };
    let rows: Vec<Vec<Conditions>> = truth.rounds.iter().map(row).collect();
    let channel = ReplayedChannel::from_rows(&rows, truth.interval).map_err(Failure::input)?;
    Ok((channel, truth.model, truth.downlink))
}

/// The text of a table of rates; `None` if the file is something else.
fn table_of_rates(path: &Path) -> Result<Option<String>, Failure> {
    if path.extension().is_none_or(|ending| ending != "csv") {
        return Ok(None);
    }
    let wrong =
        |error: std::io::Error| Failure::input(format!("cannot read {}: {error}", path.display()));
    let length = std::fs::metadata(path).map_err(wrong)?.len();
    if length > MAX_TABLE_BYTES {
        let (place, most) = (path.display(), MAX_TABLE_BYTES);
        return Err(Failure::input(format!("bytes = {length}, expected at most {most} ({place})")));
    }
    let text = std::fs::read_to_string(path).map_err(wrong)?;
    Ok(text.lines().next().is_some_and(|line| line.contains("rate_bps")).then_some(text))
}
