//! A line on two logarithmic axes, as a PNG file.

/// A drawing: seconds against something.
#[derive(Debug)]
pub struct Plot {
    pub name: String,
    unit: String,
    series: Vec<(f64, f64)>,
}

const WIDTH: usize = 720;
const HEIGHT: usize = 480;
const LEFT: usize = 84;
const RIGHT: usize = 24;
const TOP: usize = 40;
const BOTTOM: usize = 64;
/// Screen pixels of a pixel of the letters.
const SCALE: usize = 3;

const INK: [u8; 3] = [40, 40, 48];
const GRID: [u8; 3] = [220, 222, 228];
const LINE: [u8; 3] = [0, 96, 168];
/// The slope of 1 through the last point, for comparison.
const LINEAR: [u8; 3] = [224, 150, 60];

impl Plot {
    pub fn new(name: impl Into<String>, unit: impl Into<String>, series: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), unit: unit.into(), series }
    }

    /// The PNG file's bytes.
    pub fn png(&self) -> Result<Vec<u8>, String> {
        let mut canvas = Canvas { pixels: vec![255; WIDTH * HEIGHT * 3] };
        self.draw(&mut canvas);
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, WIDTH as u32, HEIGHT as u32);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header().map_err(|e| e.to_string())?;
        writer.write_image_data(&canvas.pixels).map_err(|e| e.to_string())?;
        writer.finish().map_err(|e| e.to_string())?;
        Ok(out)
    }

    fn draw(&self, canvas: &mut Canvas) {
        let (x, y) = (Axis::new(self.series.iter().map(|p| p.0)), Axis::new(self.series.iter().map(|p| p.1)));
        let (wide, high) = ((WIDTH - LEFT - RIGHT) as f64, (HEIGHT - TOP - BOTTOM) as f64);
        let place = |(a, b): (f64, f64)| {
            (LEFT as f64 + x.part(a) * wide, HEIGHT as f64 - BOTTOM as f64 - y.part(b) * high)
        };
        let floor = HEIGHT - BOTTOM;
        for decade in x.low..=x.high {
            let (at, _) = place((10_f64.powi(decade), 10_f64.powi(y.low)));
            canvas.line((at, TOP as f64), (at, floor as f64), GRID, 1);
            canvas.text(at as usize - 12, floor + 10, &format!("1E{decade}"));
        }
        for decade in y.low..=y.high {
            let (_, at) = place((10_f64.powi(x.low), 10_f64.powi(decade)));
            canvas.line((LEFT as f64, at), ((WIDTH - RIGHT) as f64, at), GRID, 1);
            canvas.text(8, at as usize - 7, &format!("1E{decade}"));
        }
        canvas.text(LEFT, 12, "SECONDS");
        canvas.text(LEFT, HEIGHT - 24, &self.unit);
        if let (Some(first), Some(last)) = (self.series.first(), self.series.last()) {
            let from = (last.1 * first.0 / last.0).max(10_f64.powi(y.low));
            canvas.line(place((last.0 * from / last.1, from)), place(*last), LINEAR, 1);
        }
        for pair in self.series.windows(2) {
            canvas.line(place(pair[0]), place(pair[1]), LINE, 3);
        }
        for point in &self.series {
            let (a, b) = place(*point);
            canvas.square(a, b, 9, LINE);
        }
    }
}

/// Decades that an axis spans.
struct Axis {
    low: i32,
    high: i32,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values.fold((f64::MAX, f64::MIN_POSITIVE), |(l, h), v| (l.min(v), h.max(v)));
        let low = low.log10().floor() as i32;
        Self { low, high: (high.log10().ceil() as i32).max(low + 1) }
    }

    fn part(&self, value: f64) -> f64 {
        (value.log10() - f64::from(self.low)) / f64::from(self.high - self.low)
    }
}

struct Canvas {
    pixels: Vec<u8>,
}

impl Canvas {
    fn square(&mut self, x: f64, y: f64, side: usize, color: [u8; 3]) {
        let corner = |v: f64| (v - side as f64 / 2.0).round().max(0.0) as usize;
        for row in corner(y)..(corner(y) + side).min(HEIGHT) {
            for column in corner(x)..(corner(x) + side).min(WIDTH) {
                self.pixels[(row * WIDTH + column) * 3..][..3].copy_from_slice(&color);
            }
        }
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), color: [u8; 3], width: usize) {
        let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).ceil().max(1.0);
        for i in 0..=steps as usize {
            let part = i as f64 / steps;
            self.square(from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part, width, color);
        }
    }

    fn text(&mut self, x: usize, y: usize, text: &str) {
        for (i, letter) in text.to_uppercase().chars().enumerate() {
            for (row, bits) in glyph(letter).into_iter().enumerate() {
                for column in (0..3).filter(|c| bits >> (2 - c) & 1 == 1) {
                    let (a, b) = (x + (i * 4 + column) * SCALE, y + row * SCALE);
                    self.square(a as f64 + 1.5, b as f64 + 1.5, SCALE, INK);
                }
            }
        }
    }
}

/// Rows of three pixels, from the top; what has no letter is empty.
fn glyph(letter: char) -> [u8; 5] {
    const DIGITS: [[u8; 5]; 10] = [
        [7, 5, 5, 5, 7],
        [2, 6, 2, 2, 7],
        [7, 1, 7, 4, 7],
        [7, 1, 7, 1, 7],
        [5, 5, 7, 1, 1],
        [7, 4, 7, 1, 7],
        [7, 4, 7, 5, 7],
        [7, 1, 1, 1, 1],
        [7, 5, 7, 5, 7],
        [7, 5, 7, 1, 7],
    ];
    const LETTERS: [[u8; 5]; 26] = [
        [2, 5, 7, 5, 5],
        [6, 5, 6, 5, 6],
        [3, 4, 4, 4, 3],
        [6, 5, 5, 5, 6],
        [7, 4, 6, 4, 7],
        [7, 4, 6, 4, 4],
        [3, 4, 5, 5, 3],
        [5, 5, 7, 5, 5],
        [7, 2, 2, 2, 7],
        [1, 1, 1, 5, 2],
        [5, 5, 6, 5, 5],
        [4, 4, 4, 4, 7],
        [5, 7, 7, 5, 5],
        [6, 5, 5, 5, 5],
        [2, 5, 5, 5, 2],
        [6, 5, 6, 4, 4],
        [2, 5, 5, 6, 3],
        [6, 5, 6, 5, 5],
        [3, 4, 2, 1, 6],
        [7, 2, 2, 2, 2],
        [5, 5, 5, 5, 7],
        [5, 5, 5, 5, 2],
        [5, 5, 7, 7, 5],
        [5, 5, 2, 5, 5],
        [5, 5, 2, 2, 2],
        [7, 1, 2, 4, 7],
    ];
    match letter {
        '0'..='9' => DIGITS[letter as usize - '0' as usize],
        'A'..='Z' => LETTERS[letter as usize - 'A' as usize],
        '-' => [0, 0, 7, 0, 0],
        '+' => [0, 2, 7, 2, 0],
        ',' => [0, 0, 0, 2, 4],
        '.' => [0, 0, 0, 0, 2],
        _ => [0; 5],
    }
}
