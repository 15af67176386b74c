// SPDX-License-Identifier: Apache-2.0
//! What a verdict costs in governor, the in-process limiter that bench_judge is compared with.
//!
//! The users, keys and requests are bench_judge's: addresses as strings, first every user in turn, then users chosen
//! evenly. A verdict asks keyed limiters (governor's own choice of map, hasher and clock): one a limit, twenty a
//! minute, a hundred an hour, a thousand a day, all of them each time; beside it, the first one alone. One thread; its
//! own time.
//!
//! usage: peer_governor [USERS]

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::fmt::Write;
use std::num::NonZeroU32;
use std::time::Duration;

const RUNS: usize = 5;

fn thread_seconds() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec that lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn user_key(user: u32, text: &mut String) {
    let ip = user.wrapping_add(1).wrapping_mul(2654435761).to_be_bytes();
    text.clear();
    write!(text, "{}.{}.{}.{}", ip[0], ip[1], ip[2], ip[3]).unwrap();
}

struct Users {
    count: u32,
    random: u64,
}

impl Users {
    fn next(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (((self.random >> 32) * u64::from(self.count)) >> 32) as u32
    }
}

/// Keys are made a frame at a time and not timed, as bench_judge does it.
fn verdict_rate(limiters: &[DefaultKeyedRateLimiter<String>], users: &mut Users, requests: usize, keys: &mut [String]) -> f64 {
    let mut seconds = 0.0;
    let (mut done, mut passed) = (0, 0usize);
    while done < requests {
        for key in keys.iter_mut() {
            user_key(users.next(), key);
        }
        let begin = thread_seconds();
        for key in keys.iter() {
            passed += usize::from(limiters.iter().all(|limiter| limiter.check_key(key).is_ok()));
        }
        seconds += thread_seconds() - begin;
        done += keys.len();
    }
    assert!(passed > 0);
    done as f64 / seconds
}

fn limiter(count: u32, window: Duration) -> DefaultKeyedRateLimiter<String> {
    let quota = Quota::with_period(window / count).unwrap().allow_burst(NonZeroU32::new(count).unwrap());
    RateLimiter::keyed(quota)
}

fn measure(name: &str, limiters: &[DefaultKeyedRateLimiter<String>], users: u32) {
    let mut key = String::new();
    for user in 0..users {
        user_key(user, &mut key);
        for limiter in limiters {
            let _ = limiter.check_key(&key);
        }
    }
    let mut chosen = Users { count: users, random: 88172645463325252 };
    let mut keys = vec![String::with_capacity(16); 2048];
    let requests = users as usize / 5;
    let mut rates: Vec<f64> = (0..RUNS).map(|_| verdict_rate(limiters, &mut chosen, requests, &mut keys)).collect();
    rates.sort_by(f64::total_cmp);
    println!(
        "{{\"bench\":\"{name}\",\"unit\":\"verdicts/s\",\"rate\":{:.0},\"limits\":{},\"users\":{users}}}",
        rates[RUNS / 2],
        limiters.len()
    );
}

fn main() {
    let users = std::env::args().nth(1).map_or(10_000_000, |text| text.parse().expect("USERS is a number"));
    let minute = limiter(20, Duration::from_secs(60));
    let hour = limiter(100, Duration::from_secs(3600));
    let day = limiter(1000, Duration::from_secs(86400));
    let mut limiters = vec![minute];
    measure("governor_one_limit", &limiters, users);
    limiters.push(hour);
    limiters.push(day);
    measure("governor", &limiters, users);
}
