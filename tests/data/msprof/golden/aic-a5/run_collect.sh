#!/usr/bin/env bash
# Builds this replay and runs it in the vendor's simulator, on any machine with CANN. Written by Insight Trace.
#
#   CANN_HOME=/usr/local/Ascend/ascend-toolkit/latest ./run_collect.sh
#
# Also read: PTO_ISA_ROOT, SIMPLER_ROOT (checkouts), SOC_VERSION, DEVICE_ID, MSPROF_TIMEOUT (minutes, 1 to 2880).
set -euo pipefail

cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")"

default_soc=dav_3510
default_pto_isa=/opt/pto-isa
default_simpler=/opt/simpler
soc="${SOC_VERSION:-$default_soc}"
pto_isa="${PTO_ISA_ROOT:-$default_pto_isa}"
simpler="${SIMPLER_ROOT:-$default_simpler}"
minutes="${MSPROF_TIMEOUT:-120}"
export ACL_DEVICE_ID="${DEVICE_ID:-0}"

fail() {
    printf 'run_collect: %s\n' "$1" >&2
    exit 1
}

home="${CANN_HOME:-${ASCEND_HOME_PATH:-}}"
[[ -n "$home" ]] || fail 'set CANN_HOME to the CANN toolkit, the folder with set_env.sh'
export ASCEND_HOME_PATH="$home"
for set_env in "$home/set_env.sh" "$home/../set_env.sh"; do
    if [[ -r "$set_env" ]]; then
        set +eu
        # shellcheck disable=SC1090
        source "$set_env" >/dev/null
        set -eu
        break
    fi
done
home="$ASCEND_HOME_PATH"  # set_env.sh may know better
export PATH="$home/bin:$home/compiler/ccec_compiler/bin:$home/tools/profiler/bin:$PATH"

case "$(uname -m)" in
    aarch64 | arm64) triplet=aarch64-linux ;;
    *) triplet=x86_64-linux ;;
esac
simulator=
for candidate in "$home/$triplet/simulator" "$home/simulator" "$home/tools/simulator"; do
    if [[ -e "$candidate/$soc/lib/libruntime_camodel.so" ]]; then
        simulator="$candidate/$soc/lib"
        break
    fi
done
[[ -n "$simulator" ]] || fail "no simulator with a camodel library for '$soc' below $home; set SOC_VERSION"
[[ -d "$pto_isa/include" ]] || fail "set PTO_ISA_ROOT to a pto-isa checkout; '$pto_isa' has no include/"
command -v msprof >/dev/null || fail 'msprof is not on PATH; does the CANN installation have it?'

export LD_LIBRARY_PATH="$PWD/build:$simulator:$home/lib64:$home/$triplet/devlib:$home/devlib:${LD_LIBRARY_PATH:-}"
umask 077
mkdir -p build outputs msprof_collect/out insight_export
cmake -S . -B build "-DSOC_VERSION=$soc" "-DPTO_ISA_ROOT=$pto_isa" "-DSIMPLER_ROOT=$simpler"
cmake --build build --target replay_host

have_result() { [[ -n "$(find "$1" -path '*/simulator/trace.json' -print -quit)" ]]; }
newest_run() { find "$1" -mindepth 1 -maxdepth 1 -type d -name 'OPPROF_*' | sort | tail -n 1; }

# msprof answers 0 whatever happens, so only what it leaves on disk counts.
msprof op simulator --application=build/replay_host --kernel-name=replay_entry "--launch-count=1" \
    "--soc-version=$soc" "--timeout=$minutes" --output=msprof_collect/out 2>&1 | tee msprof_collect/collect.log || true

if have_result msprof_collect/out; then
    mv -- "$(newest_run msprof_collect/out)" insight_export/
else
    # Older releases only collect; the logs they leave are exported in a second pass.
    source_dir=
    run="$(newest_run msprof_collect/out)"
    for candidate in device0/tmp_dump device0/dump tmp_dump dump; do
        if [[ -n "$run" && -d "$run/$candidate" ]]; then
            source_dir="$run/$candidate"
            break
        fi
    done
    [[ -n "$source_dir" ]] || fail 'the simulator left nothing to export; see msprof_collect/collect.log'
    if [[ ! -e "$source_dir/pc_start_addr.txt" ]]; then
        address="$(find "$run" -name pc_start_addr.txt -print -quit)"
        [[ -z "$address" ]] || cp -- "$address" "$source_dir/"
    fi
    msprof op simulator "--export=$source_dir" --output=insight_export 2>&1 | tee msprof_collect/export.log || true
fi
have_result insight_export || fail 'no simulator/trace.json was written; see msprof_collect/*.log'
find "$PWD/insight_export" -type d -name simulator | sort | tail -n 1
