//! Every kernel on every vector unit of this machine, one thread, beside its twin in plain Rust.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use anyhow::{Result, bail};
use lookalike::unstable::kernel::{
    LANES, Mixer, Packed, VectorUnit, byte_classes_on, majority_on, min_values_on, near_packed_on, near_pairs_on,
};

/// Tokens of a page.
const TOKENS: usize = 450;
/// Numbers of a page's MinHash sketch.
const FUNCTIONS: usize = 84;
/// Numbers that a query of the index is compared with.
const NUMBERS: u32 = 4096;
/// Bits of those that are packed.
const WIDTH: u32 = 48;
/// Within so many bits numbers are near.
const RADIUS: u32 = 3;
/// How often everything is measured; the fastest round counts.
const ROUNDS: usize = 25;
/// Calls per round.
const CALLS: usize = 200;

const MIXER: Mixer = Mixer { low: 0x9e37_79b1, high: 0x85eb_ca77, offset: 0x1656_67b1_9e37_79f9 };

/// What the kernels work on.
struct Inputs {
    words: Vec<u64>,
    halves: Vec<u32>,
    text: Vec<[u8; LANES]>,
    packed: Vec<u8>,
}

/// One kernel: what it is called, how many items a call is about, and the call.
type Job<'a> = (&'static str, usize, Box<dyn FnMut(VectorUnit) + 'a>);

impl Inputs {
    fn new() -> Inputs {
        let words: Vec<u64> =
            (0..u64::from(NUMBERS)).map(|n| MIXER.mix(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Inputs {
            halves: bytes.as_chunks::<4>().0.iter().map(|&half| u32::from_le_bytes(half)).collect(),
            text: bytes.as_chunks::<LANES>().0.to_vec(),
            packed: bytes,
            words,
        }
    }
}

/// Calls one kernel so often, on the vector unit of this name; ends the program with 3 if this machine has none.
pub(crate) fn repeat(number: usize, unit: &str, calls: usize) -> Result<()> {
    let inputs = Inputs::new();
    let Some((name, _, mut call)) = jobs(&inputs).into_iter().nth(number) else {
        bail!("there is no kernel {number}");
    };
    let Some(unit) = VectorUnit::available().find(|available| available.to_string() == unit) else {
        std::process::exit(3);
    };
    (0..calls).for_each(|_| call(unit));
    writeln!(io::stdout(), "{name}")?;
    Ok(())
}

/// Prints a table: nanoseconds per item.
pub(crate) fn run() -> io::Result<()> {
    let inputs = Inputs::new();
    let mut jobs = jobs(&inputs);
    let units: Vec<VectorUnit> = VectorUnit::available().collect();

    let mut out = io::stdout().lock();
    writeln!(out, "ns per item, one thread; the fastest of {ROUNDS} rounds\n")?;
    write!(out, "| kernel, item |")?;
    units.iter().try_for_each(|unit| write!(out, " {unit} |"))?;
    writeln!(out, "\n|---{}|", "|---".repeat(units.len()))?;
    for (name, items, call) in &mut jobs {
        write!(out, "| {name} |")?;
        for &unit in &units {
            let mut seconds = f64::MAX;
            for _ in 0..ROUNDS {
                let started = Instant::now();
                (0..CALLS).for_each(|_| call(unit));
                seconds = seconds.min(started.elapsed().as_secs_f64());
            }
            write!(out, " {:.2} |", seconds * 1e9 / (CALLS * *items) as f64)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn jobs(inputs: &Inputs) -> Vec<Job<'_>> {
    let (multipliers, offsets) = inputs.halves[..2 * FUNCTIONS].split_at(FUNCTIONS);
    let tokens = &inputs.words[..TOKENS];
    let mut minima = vec![0; FUNCTIONS];
    let (mut found, mut pairs) = (Vec::new(), Vec::new());
    vec![
        (
            "84 min-values, token",
            TOKENS,
            Box::new(move |unit| {
                min_values_on(unit, black_box(&inputs.halves[..TOKENS]), multipliers, offsets, &mut minima);
                black_box(&minima);
            }),
        ),
        (
            "majority, word",
            TOKENS,
            Box::new(move |unit| {
                black_box(majority_on(unit, black_box(tokens), None));
            }),
        ),
        (
            "majority of mixed words, word",
            TOKENS,
            Box::new(move |unit| {
                black_box(majority_on(unit, black_box(tokens), Some(MIXER)));
            }),
        ),
        (
            "byte classes, 64 bytes",
            inputs.text.len(),
            Box::new(move |unit| {
                for block in &inputs.text {
                    black_box(byte_classes_on(unit, black_box(block)));
                }
            }),
        ),
        (
            "near numbers of 48 bits, number",
            NUMBERS as usize,
            Box::new(move |unit| {
                found.clear();
                let packed = Packed::new(black_box(&inputs.packed), WIDTH);
                near_packed_on(unit, packed, 0..NUMBERS, inputs.words[7], RADIUS, &mut found);
                black_box(&found);
            }),
        ),
        (
            "near pairs, pair",
            8 * NUMBERS as usize,
            Box::new(move |unit| {
                pairs.clear();
                near_pairs_on(unit, &inputs.words[..8], black_box(&inputs.words), RADIUS, &mut pairs);
                black_box(&pairs);
            }),
        ),
    ]
}
