//! Orders are what others say they are: loaderx's streams, and an implementation in Python.

use serde_json::Value;
use tensilo_loader::{
    EpochOrder, Key, Mixture, MixtureOrder, Order, Permutation, Sampler, SamplerOptions, Sfc64, Shuffle,
    Stream,
};

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().expect("a list").iter().map(|v| v.as_u64().expect("a number")).collect()
}

fn number(vector: &Value, name: &str) -> u64 {
    vector[name].as_u64().expect("a number")
}

/// Written by loaderx 0.5.0.
fn streams() -> Vec<Value> {
    serde_json::from_str(include_str!("fixtures/sampler_streams.json")).expect("JSON")
}

#[test]
fn all_44_streams_of_loaderx_are_the_same_here() {
    let (mut iid, mut sequential) = (0, 0);
    for vector in streams() {
        let (len, batch) = (number(&vector, "length"), number(&vector, "batch") as usize);
        let (order, expected) = if vector["mode"] == "IID" {
            iid += 1;
            (Order::Iid, numbers(&vector["first_two_batches"]))
        } else {
            sequential += 1;
            let batches = vector["first_six_batches"].as_array().expect("a list");
            (Order::Sequential, batches.iter().flat_map(numbers).collect())
        };
        let seed = vector["seed"].as_u64().unwrap_or(42);
        let mut stream = match order {
            Order::Iid => Stream::iid(len, seed),
            _ => Stream::sequential(len),
        }
        .unwrap();
        let mut filled = vec![0; expected.len()];
        filled.chunks_mut(batch).for_each(|ids| stream.fill(ids));
        assert_eq!(filled, expected);
        for world in 1..=batch.min(3) as u64 {
            let mut ranks: Vec<Sampler> = (0..world)
                .map(|rank| SamplerOptions {
                    batch_size: batch,
                    order: order.clone(),
                    seed,
                    rank,
                    world,
                    ..SamplerOptions::default()
                })
                .map(|options| Sampler::new(len, options).unwrap())
                .collect();
            let mut joined = Vec::new();
            while joined.len() < expected.len() {
                joined.extend(ranks.iter_mut().flat_map(|r| r.next_batch().unwrap().1));
            }
            assert_eq!(joined, expected, "{vector}, {world} ranks");
        }
    }
    assert_eq!((iid, sequential), (40, 4));
}

#[test]
fn a_stream_goes_on_from_its_state_and_skips_as_it_fills() {
    for mut stream in [Stream::iid(1000, 7).unwrap(), Stream::sequential(13).unwrap()] {
        let mut whole = stream.clone();
        let mut ids = [0; 40];
        whole.fill(&mut ids);
        stream.skip(15);
        let mut resumed = Stream::iid(1000, 0).unwrap();
        if stream.words() == [0; 4] {
            resumed = Stream::sequential(13).unwrap();
        }
        resumed.restore(stream.cursor(), stream.words());
        let mut rest = [0; 25];
        resumed.fill(&mut rest);
        assert_eq!(rest, ids[15..]);
    }
    let mut generator = Sfc64::new(0);
    assert!((0..1000).all(|_| generator.below(3) < 3));
    assert!(Stream::iid(0, 1).is_err() && Stream::sequential(0).is_err());
}

#[test]
fn permutations_blocks_and_mixtures_equal_the_python_implementation() {
    let vectors: Vec<Value> = serde_json::from_str(include_str!("fixtures/permutation.json")).expect("JSON");
    let mut kinds = std::collections::BTreeMap::<String, usize>::new();
    for v in &vectors {
        let kind = v["kind"].as_str().expect("a kind");
        *kinds.entry(kind.to_owned()).or_default() += 1;
        let seed = number(v, "seed");
        match kind {
            "permutation" => {
                let permutation = Permutation::new(number(v, "last"), Key::new(seed, 1, 0, 0));
                for (place, value) in numbers(&v["places"]).into_iter().zip(numbers(&v["values"])) {
                    assert_eq!(permutation.at(place), value, "{v}");
                    assert_eq!(permutation.place_of(value), place);
                }
            }
            "epoch" => {
                let mut order = EpochOrder::new(number(v, "len"), seed, number(v, "epoch"), Shuffle::Full);
                let ids: Vec<u64> = (0..number(v, "len")).map(|i| order.at(i)).collect();
                assert_eq!(ids, numbers(&v["ids"]));
            }
            "blocks" => {
                let shuffle = Shuffle::Blocks { block: number(v, "block"), window: number(v, "window") };
                let mut order = EpochOrder::new(number(v, "len"), seed, number(v, "epoch"), shuffle);
                let ids: Vec<u64> = (0..number(v, "len")).map(|i| order.at(i)).collect();
                assert_eq!(ids, numbers(&v["ids"]), "{v}");
            }
            "mixture" => {
                let parts = v["parts"].as_array().expect("parts").iter().map(numbers);
                let mixture = Mixture::new(parts.map(|p| (p[0], p[1] as u32)).collect()).unwrap();
                let mut order = MixtureOrder::new(mixture, seed);
                let ids: Vec<u64> = (0..60).map(|i| order.at(i)).collect();
                assert_eq!(ids, numbers(&v["ids"]));
            }
            other => panic!("{other}"),
        }
    }
    let count = |kind: &str| kinds[kind];
    assert_eq!((count("permutation"), count("epoch"), count("blocks"), count("mixture")), (42, 3, 4, 2));
}
