//! Format 2: any detector, any scan, any count.

mod converting;
mod damage;
mod products;
mod properties;
mod publishing;
mod sources;
mod stacks;
mod storage;
mod touching;
