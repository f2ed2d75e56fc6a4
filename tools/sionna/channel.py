"""From paths to the numbers of a link. Sums run in a fixed order, so that runs agree to the last bit."""

import numpy as np
from scipy.special import j0

SPEED_OF_LIGHT_M_S = 299_792_458.0
# J0(x) = 1/2, Clarke's correlation fallen to a half.
HALF_CORRELATION = 1.5211


def wideband_gain(paths, times_s, carrier_hz, bandwidth_hz, subcarriers):
    """Power gain [T, N]: |H|^2 averaged over the subcarriers, with H the sum of the paths at each time."""
    tones_hz = carrier_hz + subcarrier_offsets(bandwidth_hz, subcarriers)
    phases = [np.exp(-2j * np.pi * tone_hz * paths.delay_s) for tone_hz in tones_hz]
    gain = np.zeros((len(times_s), len(paths.found)))
    for index, time_s in enumerate(times_s):
        turned = paths.amplitude * np.exp(2j * np.pi * paths.doppler_hz * time_s)
        for phase in phases:
            gain[index] += np.abs((turned * phase).sum(axis=1)) ** 2
    return gain / subcarriers


def subcarrier_offsets(bandwidth_hz, subcarriers):
    """Centres of equal parts of the band, relative to the carrier."""
    return (np.arange(subcarriers) - (subcarriers - 1) / 2) * (bandwidth_hz / subcarriers)


def delay_spread(paths):
    """Root mean square spread of the delay [N], weighted by power."""
    weight = np.abs(paths.amplitude) ** 2
    total = weight.sum(axis=1, keepdims=True)
    weight = weight / np.where(total > 0.0, total, 1.0)  # without a path the spread is zero
    mean = (weight * paths.delay_s).sum(axis=1, keepdims=True)
    return np.sqrt((weight * (paths.delay_s - mean) ** 2).sum(axis=1))


def largest_doppler(paths):
    """Largest |Doppler| of a path [N]."""
    return np.abs(paths.doppler_hz).max(axis=1, initial=0.0)


def max_doppler(speed_m_s, carrier_hz):
    """Doppler of a path straight ahead."""
    return speed_m_s * carrier_hz / SPEED_OF_LIGHT_M_S


def coherence_time(speed_m_s, carrier_hz):
    """Time after which Clarke's correlation J0(2 pi f_D t) is one half; None without motion."""
    if speed_m_s == 0.0:
        return None
    return HALF_CORRELATION / (2 * np.pi * max_doppler(speed_m_s, carrier_hz))


def round_correlation(speed_m_s, carrier_hz, interval_s):
    """Clarke's correlation of the channel from one round to the next."""
    return float(j0(2 * np.pi * max_doppler(speed_m_s, carrier_hz) * interval_s))
