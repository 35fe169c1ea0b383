# sluice-sim run, sweep, compare, check, replay and shrink as a user runs them: exit codes, messages, files.

set(sim $<TARGET_FILE:sluice-sim>)
set(studies "${CMAKE_CURRENT_BINARY_DIR}/studies")
file(WRITE "${studies}/holds.toml" [=[
schema = 1
question = "Does it hold?"
replications = 3
[run]
duration = "5s"
[[variant]]
name = "shared"
[[variant]]
name = "alone"
limiter.scope = "per_process"
[[expect]]
metric = "goodput"
least = 1
]=])
file(WRITE "${studies}/fails.toml" "include = \"holds.toml\"\n[[expect]]\nmetric = \"goodput\"\nleast = 1000\n")
file(WRITE "${studies}/open.toml" "include = \"holds.toml\"\n[[expect]]\nmetric = \"goodput\"\nleast = 84\nmost = 85\n")
file(WRITE "${studies}/crashes.toml" [=[
schema = 1
[run]
duration = "10s"
[[fault]]
kind = "upstream_slow"
at = "1s"
for = "1s"
factor = 2
[[fault]]
kind = "worker_crash"
at = "3s"
for = "1s"
[judges]
never = ["crashes"]
]=])

sluice_tool_test(sim_list CODE 0 OUT "redis-outage +Redis is away.*sluice-sim run NAME" COMMAND ${sim} list)
sluice_tool_test(sim_run_holds CODE 0 OUT "holds +successful calls of 'shared': at least 1 /s; it is"
  COMMAND ${sim} run ${studies}/holds.toml)
sluice_tool_test(sim_run_fails CODE 1 OUT "FAILS +successful calls" COMMAND ${sim} run ${studies}/fails.toml)
sluice_tool_test(sim_run_undecided CODE 3 OUT "undecided +successful calls"
  COMMAND ${sim} run ${studies}/open.toml)
sluice_tool_test(sim_run_judged CODE 1 OUT "OBJECTS +never" ERR "This repeats the run.*schema = 1.*worker_crash"
  COMMAND ${sim} run ${studies}/crashes.toml --replications 2)
file(WRITE "${studies}/rare.toml" "schema = 1\nreplications = 20\n[run]\nduration = \"1s\"\n[fleet]\nworkers = 1\n"
  "[arrivals]\nrate = \"10/s\"\n[upstream]\nfailures = 0.02\n[judges]\nnever = [\"share_failed\"]\n")
sluice_tool_test(sim_run_judged_later CODE 1 ERR "This repeats the run.*seed = [0-9][0-9]+\n"
  COMMAND ${sim} run ${studies}/rare.toml)
sluice_tool_test(sim_run_twice CODE 0 OUT "both runs are the same"
  COMMAND ${sim} run ${studies}/holds.toml --twice)
sluice_tool_test(sim_run_unknown CODE 2
  ERR "there is no scenario or file \"redis-outtage\"; did you mean redis-outage.; see sluice-sim list"
  COMMAND ${sim} run redis-outtage)
sluice_tool_test(sim_run_folder CODE 2 ERR "it is a folder" COMMAND ${sim} run ${studies})
sluice_tool_test(sim_run_bad_set CODE 2 ERR "--set: fleet.worker: there is no such parameter; did you mean fleet.workers"
  COMMAND ${sim} run ${studies}/holds.toml --set fleet.worker=3)
sluice_tool_test(sim_run_impossible CODE 2 ERR "holds .variant \"[a-z]+\".: .*cap 8640000000000 us"
  COMMAND ${sim} run ${studies}/holds.toml --set client.cap=100d)
sluice_tool_test(sim_run_bad_jobs CODE 2 ERR "--jobs" COMMAND ${sim} run ${studies}/holds.toml --jobs 0)
sluice_tool_test(sim_run_bad_seed CODE 2 ERR "--seed" COMMAND ${sim} run ${studies}/holds.toml --seed x)
sluice_tool_test(sim_run_bad_precision CODE 2 ERR "--precision: must be 0.0001 to 1, got nan"
  COMMAND ${sim} run ${studies}/holds.toml --precision nan)
file(WRITE "${studies}/goodput.toml" "schema = 1\nheadline = [\"goodput\"]\n[run]\nduration = \"100ms\"\n")
sluice_tool_test(sim_run_imprecise CODE 3 OUT "1,000 replications.*undecided successful calls is not known within 0.01 %"
  COMMAND ${sim} run ${studies}/goodput.toml --replications 1 --precision 0.0001)
sluice_tool_test(sim_run_trace_twice CODE 2 ERR "excludes"
  COMMAND ${sim} run ${studies}/holds.toml --twice --trace ${studies}/none.jsonl)
sluice_tool_test(sim_run_nothing CODE 2 ERR "SCENARIO is required" COMMAND ${sim} run)
# A queue that grows for ever has no warm-up.
file(WRITE "${studies}/fills.toml" [=[
schema = 1
question = "How long does it fill?"
replications = 2
[run]
duration = "20s"
warm_up = "auto"
[fleet]
workers = 1
[limiter]
kind = "none"
[upstream]
servers = 100
latency = "500ms"
[judges]
never = ["offered"]
]=])
sluice_tool_test(sim_warm_up CODE 1 OUT "warm-up .MSER-5..*fills .* (5|6|7|8|9)00 ms\n"
  ERR "This repeats the run.*warm_up = \"(5|6|7|8|9)00000us\"" COMMAND ${sim} run ${studies}/fills.toml)
sluice_tool_test(sim_warm_up_too_short CODE 2
  ERR "fills: the run is too short for its warm-up: run.warm_up = .auto. .MSER-5. would cut the first 15.0* s of 20.0* s"
  COMMAND ${sim} run ${studies}/fills.toml --set arrivals.load=3)
sluice_tool_test(sim_warm_up_set CODE 0 OUT "shared .* (0 us|[0-9.]+ m?s)\n.*alone .* (0 us|[0-9.]+ m?s)\n"
  COMMAND ${sim} run ${studies}/holds.toml --set run.warm_up=auto --set arrivals.load=0.5)
sluice_tool_test(sim_warm_up_compare CODE 1 OUT "both with a warm-up of [0-9.]+ m?s, by MSER-5\nOBJECTS   never of fills"
  COMMAND ${sim} compare ${studies}/fills.toml ${studies}/holds.toml:shared)
# Clients who do not think, of an API that takes no time from 3 s on.
file(WRITE "${studies}/endless.toml" [=[
schema = 1
replications = 2
[run]
duration = "10s"
events_per_instant = 20000
[arrivals]
kind = "closed"
think = "0s"
[limiter]
kind = "none"
[upstream]
latency = "5ms"
to = "0s"
from = "0s"
[[fault]]
kind = "upstream_slow"
at = "3s"
for = "1s"
factor = 0.0
]=])
sluice_tool_test(sim_endless CODE 1 OUT "OBJECTS +time goes on: the time stands still at 3.[0-9]* s: 20000 events have run"
  ERR "This repeats the run that .time goes on. objects to:.*revision.*seed = 1.*\\[\\[fault" COMMAND ${sim} run ${studies}/endless.toml)
sluice_tool_test(sim_endless_shrink CODE 1 OUT "\"time goes on\" objects to it; found in.*workers = \"1\".*factor = 0"
  COMMAND ${sim} shrink ${studies}/endless.toml --judge "time goes on")
sluice_tool_test(sim_endless_trace CODE 1 ERR "endless.jsonl: it has the events until the time stands still at 3.[0-9]* s"
  COMMAND ${sim} run ${studies}/endless.toml --trace ${studies}/endless.jsonl)
sluice_tool_test(sim_sweep CODE 0 OUT "arrivals.load = 0.5.*arrivals.load = 1.5"
  COMMAND ${sim} sweep ${studies}/holds.toml arrivals.load 0.5 1.5)
sluice_tool_test(sim_sweep_unknown CODE 2 ERR "arrivals.lood: there is no such parameter; did you mean arrivals.load"
  COMMAND ${sim} sweep ${studies}/holds.toml arrivals.lood 0.5 1.5)
file(WRITE "${studies}/grid.toml" [=[
schema = 1
replications = 2
[run]
duration = "2s"
[[sweep]]
parameter = "arrivals.load"
values = [0.5, 1.5]
[[sweep]]
parameter = "fleet.workers"
values = [2, 4]
]=])
sluice_tool_test(sim_grid CODE 0 OUT "load = 1.5, fleet.workers = 2 .*of 4 points .2 of arrivals.load x 2 of fleet.workers"
  ERR "grid: a grid of 4 points, 1 variant, 2 replications of each" COMMAND ${sim} sweep ${studies}/grid.toml)
sluice_tool_test(sim_grid_set CODE 0 OUT "arrivals.load = 1.5  .*2 replications, 99 %"
  COMMAND ${sim} run ${studies}/grid.toml --set fleet.workers=3)
sluice_tool_test(sim_sweep_none CODE 2 ERR "has no ..sweep..: name a PARAMETER and its VALUES"
  COMMAND ${sim} sweep ${studies}/holds.toml)
sluice_tool_test(sim_sweep_no_values CODE 2 ERR "arrivals.load: name its VALUES, as 0.5 1 2"
  COMMAND ${sim} sweep ${studies}/holds.toml arrivals.load)
sluice_tool_test(sim_compare CODE 0 OUT "shared.*alone"
  COMMAND ${sim} compare ${studies}/holds.toml:shared ${studies}/holds.toml:alone)
sluice_tool_test(sim_compare_unknown CODE 2 ERR "has no variant \"alon\"; did you mean \"alone\""
  COMMAND ${sim} compare ${studies}/holds.toml:shared ${studies}/holds.toml:alon)
sluice_tool_test(sim_compare_variants CODE 2 ERR "holds has 2 variants: name one of them behind it, as \":shared\""
  COMMAND ${sim} compare ${studies}/holds.toml ${studies}/holds.toml:alone)
sluice_tool_test(sim_compare_sweep CODE 2 ERR "grid sweeps arrivals.load: choose one value for both, as --set arrivals.load=0.5"
  COMMAND ${sim} compare ${studies}/holds.toml:shared ${studies}/grid.toml)
file(WRITE "${studies}/seed7.toml" "schema = 1\nseed = 7\nreplications = 2\n[run]\nduration = \"2s\"\n")
sluice_tool_test(sim_compare_seeds CODE 2 ERR "holds has seed 1, and seed7 has 7: choose one for both, as --seed 1"
  COMMAND ${sim} compare ${studies}/holds.toml:shared ${studies}/seed7.toml)
sluice_tool_test(sim_compare_judged CODE 1 OUT "difference of .*OBJECTS   never of crashes: .*it happened"
  COMMAND ${sim} compare ${studies}/crashes.toml ${studies}/seed7.toml --seed 3 --replications 2)
sluice_tool_test(sim_compare_interrupted CODE 130 OUT "intervals. PARTIAL: it was stopped" COMMAND timeout --preserve-status
  -s INT -k 60 2 ${sim} compare ${studies}/holds.toml:shared ${studies}/holds.toml:alone --replications 100000)
sluice_tool_test(sim_compare_json CODE 2 ERR "--json"
  COMMAND ${sim} compare ${studies}/holds.toml:shared ${studies}/holds.toml:alone --json)
sluice_tool_test(sim_shrink CODE 1 OUT "\"never crashes\" objects to it; found in.*worker_crash"
  COMMAND ${sim} shrink ${studies}/crashes.toml)
sluice_tool_test(sim_shrink_judge CODE 3 ERR "\"hints are exact\" does not object to this run"
  COMMAND ${sim} shrink ${studies}/crashes.toml --judge "hints are exact")
sluice_tool_test(sim_fuzz_judge CODE 0 OUT "\"hints are exact\" does not object to 3 worlds from seed 5 on"
  COMMAND ${sim} fuzz --first 5 --count 3 --judge "hints are exact")
sluice_tool_test(sim_fuzz_unknown_judge CODE 2 ERR "there is no judge \"hints are exat\". did you mean \"hints are exact\"."
  COMMAND ${sim} fuzz --count 1 --judge "hints are exat")
sluice_tool_test(sim_shrink_nothing CODE 3 ERR "there is nothing to shrink"
  COMMAND ${sim} shrink ${studies}/holds.toml)

# What fails counts more than what is not known, in whichever order.
sluice_tool_test(sim_check CODE 1 OUT "fails.toml +does NOT hold.*FAILS.*open.toml +does NOT hold.*undecided" COMMAND sh -c
  "\"$1\" check --update \"$2/fails.toml\" \"$2/open.toml\" >/dev/null || exec \"$1\" check \"$2/fails.toml\" \"$2/open.toml\""
  sh ${sim} ${studies})
sluice_tool_test(sim_check_open CODE 3 OUT "open.toml +does NOT hold.*undecided" COMMAND sh -c
  "\"$1\" check --update \"$2/open.toml\" >/dev/null || exec \"$1\" check \"$2/open.toml\"" sh ${sim} ${studies})

# Traces alone: another figure is no matter, another trace is.
sluice_tool_test(sim_check_traces_only CODE 1 OUT "now: +shared . trace.*before: +shared . trace . x" COMMAND sh -c
  "cp \"$2/holds.toml\" \"$2/traced.toml\" && \"$1\" check --update \"$2/traced.toml\" >/dev/null && sed -i 's/goodput | ./goodput | x/' \"$2/traced.toml.figures\" && \"$1\" check --traces \"$2/traced.toml\" && sed -i 's/trace | ./trace | x/' \"$2/traced.toml.figures\" && exec \"$1\" check --traces \"$2/traced.toml\""
  sh ${sim} ${studies})

# What shrink and a failure print replays alone, and the same judge objects.
sluice_tool_test(sim_replay CODE 1 OUT "OBJECTS +never" COMMAND sh -c
  "\"$1\" shrink \"$2/crashes.toml\" >\"$2/shrunk.toml\" || exec \"$1\" replay \"$2/shrunk.toml\"" sh ${sim} ${studies})

find_program(SLUICE_PYTHON python3)
if(SLUICE_PYTHON)
  sluice_tool_test(sim_json CODE 0 OUT "\"verdict\": \"holds\"" COMMAND sh -c
    "\"$1\" run \"$2/holds.toml\" --json >\"$2/out.json\" && exec \"$3\" -m json.tool \"$2/out.json\"" sh ${sim}
    ${studies} ${SLUICE_PYTHON})
endif()
sluice_tool_test(sim_out CODE 0 OUT "figures.csv\nresult.json\nseries.csv" COMMAND sh -c
  "rm -rf \"$2/out\" && \"$1\" run \"$2/holds.toml\" --out \"$2/out/deep\" >/dev/null && cd \"$2/out/deep\" && find . -type f -size +0 -name '*.[cj]s*' | sed 's|./||' | LC_ALL=C sort && test -z \"$(find . -name '*.part')\""
  sh ${sim} ${studies})
sluice_tool_test(sim_out_is_file CODE 2 ERR "holds.toml/x: cannot be made"
  COMMAND ${sim} run ${studies}/holds.toml --out ${studies}/holds.toml/x)
# It is found before a run that would take minutes.
sluice_tool_test(sim_out_found_early CODE 2 ERR "holds.toml/x: cannot be made" COMMAND timeout 20 $<TARGET_FILE:sluice-sim>
  run ${studies}/holds.toml --replications 100000 --out ${studies}/holds.toml/x)
if(NOT SLUICE_SANITIZE)
  sluice_tool_test(sim_no_memory CODE 2 ERR "there is not enough memory" COMMAND sh -c
    "ulimit -v 600000 && exec \"$1\" run \"$2/holds.toml\" --jobs 1 --set arrivals.kind=bursts --set 'arrivals.bursts=9000000 at 1s'"
    sh ${sim} ${studies})
endif()
sluice_tool_test(sim_full_disk_help CODE 2 ERR "could not be written"
  COMMAND sh -c "exec \"$1\" check --help >/dev/full" sh ${sim})
sluice_tool_test(sim_parameters CODE 0 OUT "store.lag = 100ms\n.*a fault of kind store_failover.*upstream_second: another limit"
  COMMAND ${sim} parameters)
sluice_tool_test(sim_metrics CODE 0 OUT "share_429: calls answered 429, %.*goodput: successful calls, /s" COMMAND ${sim} metrics)
sluice_tool_test(sim_full_disk CODE 2 ERR "could not be written"
  COMMAND sh -c "exec \"$1\" run \"$2/holds.toml\" >/dev/full" sh ${sim} ${studies})
sluice_tool_test(sim_full_disk_failing CODE 2 ERR "could not be written: No space"
  COMMAND sh -c "exec \"$1\" run \"$2/fails.toml\" >/dev/full" sh ${sim} ${studies})
sluice_tool_test(sim_full_disk_trace CODE 2 ERR "/dev/full: cannot be written: No space"
  COMMAND ${sim} run ${studies}/holds.toml --trace /dev/full)
sluice_tool_test(sim_interrupted CODE 130 OUT "PARTIAL: it was stopped"
  COMMAND timeout --preserve-status -s INT -k 60 3 ${sim} run ${studies}/holds.toml --set run.duration=1s --replications 100000)

sluice_tool_test(sim_trace_interrupted CODE 130 ERR "stopped: .*slow.jsonl was not written"
  COMMAND timeout --preserve-status -s INT -k 60 2 ${sim} run ${studies}/holds.toml --set run.duration=300h --trace
    ${studies}/slow.jsonl)
sluice_realtime(tool_sim_compare_interrupted tool_sim_out_found_early tool_sim_interrupted tool_sim_trace_interrupted)

# A world in which every judge looks, and none objects.
if(NOT SLUICE_SANITIZE)
  sluice_tool_test(sim_no_false_alarm CODE 0 OUT "places.*gates.*prefetch"
    COMMAND ${sim} run ${CMAKE_CURRENT_SOURCE_DIR}/planted.toml --replications 1)
endif()

# The page is what both commands print.
sluice_tool_test(sim_reference_page CODE 0 COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/reference.sh ${sim}
  ${PROJECT_SOURCE_DIR}/docs/parameters.md ${studies})
