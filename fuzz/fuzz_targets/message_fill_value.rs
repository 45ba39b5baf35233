//! libFuzzer's entry to the target `message_fill_value`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::message_fill_value(data));
