//! The chart: for each row, how many times sessionlog's figure the others' are, on a logarithmic scale.

use std::fmt::Write as _;

use crate::figures::Figures;
use crate::report::{amount, short};
use crate::work::{PEERS, rows};

const COLOURS: [&str; 5] = ["#1b6ca8", "#8a8d91", "#c08a2d", "#7a9a4b", "#a05a8c"];
const LEFT: f64 = 90.0;
const WIDTH: f64 = 860.0;
const RIGHT: f64 = 120.0;
const BAR: f64 = 13.0;
const TOP: f64 = 62.0;
/// The powers of ten at both ends of the scale.
const SCALE: (i32, i32) = (-1, 5);

fn x(ratio: f64) -> f64 {
    let (low, high) = (f64::from(SCALE.0), f64::from(SCALE.1));
    let share = (ratio.log10().clamp(low, high) - low) / (high - low);
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

/// The whole file.
pub fn svg(heading: &str, figures: &Figures) -> String {
    let mut body = String::new();
    let mut y = TOP;
    for row in rows() {
        let Some(ours) = figures.median(row, PEERS[0].0) else { continue };
        y += 20.0;
        body += &format!(
            "<text x=\"10\" y=\"{:.0}\" font-weight=\"bold\">{}</text>\n",
            y - 6.0,
            escaped(row.text)
        );
        for ((peer, title), colour) in PEERS.iter().zip(COLOURS) {
            let Some(figure) = figures.median(row, peer) else { continue };
            let ratio = figures.ratio(row, peer).map_or(figure / ours, |ratio| ratio.median);
            // From 1, to the side on which it is.
            let (from, to) = if ratio >= 1.0 { (x(1.0), x(ratio)) } else { (x(ratio), x(1.0)) };
            let (middle, end) = (y + BAR - 3.0, x(ratio.max(1.0)) + 5.0);
            writeln!(
                body,
                "<text x=\"{:.0}\" y=\"{middle:.0}\" text-anchor=\"end\">{title}</text>\
                 <rect x=\"{from:.1}\" y=\"{:.0}\" width=\"{:.1}\" height=\"{:.0}\" fill=\"{colour}\"/>\
                 <text x=\"{end:.0}\" y=\"{middle:.0}\">{} ({} ×)</text>",
                LEFT - 6.0,
                y + 1.0,
                (to - from).max(2.0),
                BAR - 2.0,
                amount(figure, row.unit),
                short(ratio),
            )
            .expect("memory takes all");
            y += BAR;
        }
    }
    let mut lines = String::new();
    for power in SCALE.0..=SCALE.1 {
        let ratio = 10_f64.powi(power);
        let (at, colour) = (x(ratio), if power == 0 { "#333" } else { "#ddd" });
        writeln!(
            lines,
            "<line x1=\"{at:.1}\" y1=\"{:.0}\" x2=\"{at:.1}\" y2=\"{y:.0}\" stroke=\"{colour}\"/>\
             <text x=\"{at:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{ratio} ×</text>",
            TOP,
            TOP - 6.0
        )
        .expect("memory takes all");
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {WIDTH} {height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"18\" font-size=\"14\">Times sessionlog's figure; a bar to the right: sessionlog is \
         better</text>\n<text x=\"10\" y=\"34\" fill=\"#666\">{}</text>\n{lines}{body}</svg>\n",
        escaped(heading),
        height = y + 12.0,
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
