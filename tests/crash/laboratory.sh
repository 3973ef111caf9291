#!/usr/bin/env bash
# Runs a crash laboratory on this store: kills, and power cuts as they could have hit the recorded writes.
#
#   tests/crash/laboratory.sh LABORATORY [FOLDER]
#
# LABORATORY: the sources of `crashlab` (a cargo package that makes the program and the recorder that is preloaded).
# It is no part of this project. FOLDER: where everything is made, 10 GB or so; target/laboratory by default; on a
# real file system. KILLS, ORDERED, STRICT and OPENS are the numbers of states. Takes half an hour.
#
# The program under test is tests/crash, which plays writer and reader. It is built so that its system calls go
# through the C library: the recorder does not see others.
set -euo pipefail
laboratory=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=${2:-$PWD/target/laboratory}
kills=${KILLS:-500} ordered=${ORDERED:-300} strict=${STRICT:-200} opens=${OPENS:-150}

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
rm -rf "$folder/sources" "$folder/runs"
cp -r "$laboratory" "$folder/sources"
mkdir "$folder/runs"
cargo build --release --manifest-path "$folder/sources/Cargo.toml" --target-dir "$folder/built"
RUSTFLAGS="--cfg=rustix_use_libc" CARGO_TARGET_DIR="$folder/program" \
    cargo test --locked --release --test crash --no-run
crashlab=$folder/built/release/crashlab
recorder=$folder/built/release/libpwshim.so
# Its name has a hash; the newest is the one just built.
# shellcheck disable=SC2012
program=$(ls -t "$folder"/program/release/deps/crash-* | grep -v '\.d$' | head -n 1)

record() { # name, runs, milliseconds until each is killed (0: not), options of the writer
    "$crashlab" record "$folder/runs/$1" "$folder/runs/$1.trace" "$recorder" "$2" "$3" \
        "$program lab-write {dir} {seed} $4"
}
cut_power() { # name, states, mode, options of the reader, seed
    "$crashlab" cut "$folder/runs/$1.trace" "$folder/runs/$1" "$folder/runs/state" "$2" "$3" \
        "$program lab-read {dir} $4" "$5"
    rm -rf "$folder/runs/state"
}
step() {
    echo
    echo "==> $*"
    "$@"
}

# A store is kept between its kills, and every reader reads all of it: so many kills share one.
share=100
for ((done = 0; done < kills; done += share)); do
    step "$crashlab" kill "$folder/runs/killed" $((kills - done < share ? kills - done : share)) \
        "$program lab-write {dir} {seed} kill deletes" "$program lab-read {dir}" 5 200 $((1 + done))
    rm -rf "$folder/runs/killed"
done
step record lives 8 0 "lives=2 ops=40 deletes"
step cut_power lives "$ordered" ordered "" 2
step cut_power lives $((strict / 2)) strict "" 3
step cut_power lives $((strict - strict / 2)) strict die 4
# Many short lives, most of them killed: the operations of opens.
step record opens 24 150 "deletes"
CUT_FOCUS=2 step cut_power opens $((opens / 2)) ordered "" 5
CUT_FOCUS=3 step cut_power opens $((opens - opens / 2)) ordered "" 6
