//! Axes of plots.

/// How values are mapped to positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// From zero on, evenly.
    Linear,
    /// Logarithmic.
    Logarithmic,
    /// Logarithmic, with 1 on the axis.
    Ratio,
}

/// A part of a plot's width or height that stands for values.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    /// The position of the lowest value, and the distance to the highest.
    start: f64,
    length: f64,
}

/// Approximate number of ticks on a linear axis.
const TICKS: f64 = 5.0;

/// Leading digits of ticks.
const STEPS: [f64; 4] = [1.0, 2.0, 5.0, 10.0];

/// With more decades than this, only powers of ten have ticks.
const DECADES_FEW: f64 = 2.5;

/// Space beyond the outermost values of a logarithmic axis, as a factor.
const MARGIN: f64 = 1.15;

impl Axis {
    pub(super) fn new(scale: Scale, values: &[f64], start: f64, length: f64) -> Axis {
        let values = || {
            values
                .iter()
                .copied()
                .filter(|it| it.is_finite() && *it > 0.0)
        };
        let mut high = values().fold(f64::MIN_POSITIVE, f64::max);
        let mut low = values().fold(f64::INFINITY, f64::min);
        if scale != Scale::Logarithmic || !low.is_finite() {
            (low, high) = (low.min(1.0), high.max(1.0));
        }
        let (low, high) = match scale {
            Scale::Linear => (0.0, high * 1.03),
            Scale::Ratio | Scale::Logarithmic => (low / MARGIN, high * MARGIN),
        };
        Axis {
            scale,
            low,
            high,
            start,
            length,
        }
    }

    /// The position of a value.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Ratio | Scale::Logarithmic => {
                (value / self.low).ln() / (self.high / self.low).ln()
            }
        };
        self.start + self.length * share.clamp(0.0, 1.0)
    }

    /// Round values to draw lines at.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step = self.high / TICKS;
                let decade = 10_f64.powf(step.log10().floor());
                let mut steps = STEPS.iter().map(|it| it * decade);
                let step = steps.find(|it| *it >= step).unwrap_or(decade);
                let count = (self.high / step).floor() as u32;
                (0..=count).map(|index| f64::from(index) * step).collect()
            }
            Scale::Ratio | Scale::Logarithmic => {
                let decades = (self.high / self.low).log10();
                let digits = match decades > DECADES_FEW {
                    true => &STEPS[..1],
                    false => &STEPS[..3],
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
        for scale in [Scale::Linear, Scale::Ratio] {
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
    fn speeds_need_not_include_one() {
        let axis = Axis::new(Scale::Logarithmic, &[300.0, 5000.0], 0.0, 100.0);
        assert!(axis.place(300.0) < 10.0 && axis.place(5000.0) > 90.0);
        assert!(axis.ticks().contains(&1000.0));
        let none = Axis::new(Scale::Logarithmic, &[], 0.0, 100.0);
        assert!(none.place(1.0).is_finite());
    }
}
