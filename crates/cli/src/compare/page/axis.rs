//! Scales of plots.

/// How values become places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// From zero, evenly.
    Linear,
    /// Equal factors are equal distances.
    Logarithmic,
}

/// A horizontal axis.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    start: f64,
    width: f64,
}

/// Ticks of a linear axis, about.
const TICKS: f64 = 5.0;

/// Digits at which ticks stand.
const STEPS: [f64; 4] = [1.0, 2.0, 5.0, 10.0];

/// More decades than this have a tick each and none between.
const DECADES_FEW: f64 = 2.5;

impl Axis {
    /// An axis that has room for these values.
    pub(super) fn new(scale: Scale, values: &[f64], start: f64, width: f64) -> Axis {
        let usable = || {
            values
                .iter()
                .copied()
                .filter(|it| it.is_finite() && *it > 0.0)
        };
        let high = usable().fold(1.0, f64::max);
        let low = usable().fold(1.0, f64::min);
        let (low, high) = match scale {
            Scale::Linear => (0.0, high * 1.03),
            Scale::Logarithmic => (low / 1.15, high * 1.15),
        };
        Axis {
            scale,
            low,
            high,
            start,
            width,
        }
    }

    /// A logarithmic axis that does not have to show one.
    pub(super) fn of_speeds(values: &[f64], start: f64, width: f64) -> Axis {
        let least = values.iter().copied().filter(|it| *it > 0.0);
        let least = least.fold(f64::INFINITY, f64::min);
        let mut axis = Axis::new(Scale::Logarithmic, values, start, width);
        if least.is_finite() {
            axis.low = least / 1.15;
            axis.high = axis.high.max(least * 1.15);
        }
        axis
    }

    /// Where a value is.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        self.start + self.width * share.clamp(0.0, 1.0)
    }

    /// Round values to draw lines at.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step = self.high / TICKS;
                let decade = 10_f64.powf(step.log10().floor());
                let step = STEPS
                    .map(|it| it * decade)
                    .into_iter()
                    .find(|it| *it >= step);
                let step = step.unwrap_or(decade);
                let count = (self.high / step).floor() as u32;
                (0..=count).map(|index| f64::from(index) * step).collect()
            }
            Scale::Logarithmic => {
                let decades = (self.high / self.low).log10();
                let digits: &[f64] = if decades > DECADES_FEW {
                    &[1.0]
                } else {
                    &STEPS[..3]
                };
                let (first, last) = (self.low.log10().floor(), self.high.log10().ceil());
                (first as i32..=last as i32)
                    .flat_map(|power| digits.iter().map(move |it| it * 10_f64.powi(power)))
                    .filter(|it| (self.low..=self.high).contains(it))
                    .collect()
            }
        }
    }
}

/// A tick's label.
pub(super) fn label(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_on_the_axis() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let axis = Axis::new(scale, &[0.02, 3.0, f64::NAN], 100.0, 400.0);
            let places = [0.02, 1.0, 3.0].map(|it| axis.place(it));
            assert!(places.is_sorted() && places[0] >= 100.0 && places[2] <= 500.0);
            let ticks = axis.ticks();
            assert!(ticks.is_sorted() && ticks.len() >= 2, "{ticks:?}");
            assert!(ticks.contains(&1.0), "{ticks:?}");
        }
        assert_eq!(
            Axis::new(Scale::Linear, &[], 0.0, 1.0).ticks().first(),
            Some(&0.0)
        );
        assert_eq!(label(0.05), "0.05");
        assert_eq!(label(2000.0), "2000");
    }

    #[test]
    fn speeds_need_not_show_one() {
        let axis = Axis::of_speeds(&[300.0, 5000.0], 0.0, 100.0);
        assert!(axis.place(300.0) < 10.0 && axis.place(5000.0) > 90.0);
        assert!(axis.ticks().contains(&1000.0));
    }
}
