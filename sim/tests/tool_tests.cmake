# The tools as a user runs them: exit codes and messages.

# sluice_tool_test(<name> CODE <code> [OUT <regex>] [ERR <regex>] [INPUT <file>] COMMAND <program> <arg>...)
function(sluice_tool_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "CODE;OUT;ERR;INPUT" "COMMAND")
  add_test(NAME tool_${name}
    COMMAND "${CMAKE_COMMAND}" "-DCODE=${arg_CODE}" "-DOUT=${arg_OUT}" "-DERR=${arg_ERR}"
      "-DINPUT=${arg_INPUT}" -P "${CMAKE_CURRENT_SOURCE_DIR}/expect.cmake" -- ${arg_COMMAND}
  )
  set_tests_properties(tool_${name} PROPERTIES TIMEOUT 300)
endfunction()

set(log $<TARGET_FILE:sluice-sim> log)
set(demo $<TARGET_FILE:sluice-demo>)
set(small "${CMAKE_CURRENT_SOURCE_DIR}/small.log")
set(scratch "${CMAKE_CURRENT_BINARY_DIR}")
file(WRITE "${scratch}/empty.log" "")
file(WRITE "${scratch}/nonsense.log" "no\nline of it\nis of\na log\n")
set(sampled "")
foreach(hour RANGE 10 19)
  foreach(second RANGE 10 50 10)
    foreach(client RANGE 1 20)
      string(APPEND sampled "192.0.2.${client} - - [17/May/2015:${hour}:05:${second} -0030] \"GET / HTTP/1.1\" 200 512\n")
    endforeach()
  endforeach()
endforeach()
file(WRITE "${scratch}/sampled.log" "${sampled}")
set(head "192.0.2.7 - - [28/Feb/2024:23:59:58 +0100] \"GET / HTTP/1.1\" 200 512")
file(WRITE "${scratch}/cut.log" "${head} \"-\" \"cut aga\n${head} \"http://cut\n${head}\n")

foreach(program sluice-tool sluice-sim sluice-demo)
  if(TARGET ${program})
    get_target_property(name ${program} OUTPUT_NAME)
    string(REPLACE "name-NOTFOUND" ${program} name "${name}")
    sluice_tool_test(${program}_version CODE 0 OUT "^${name} ${PROJECT_VERSION}\n$" COMMAND $<TARGET_FILE:${program}> --version)
    sluice_tool_test(${program}_help_all CODE 0 OUT "Usage: ${name} .*--help-all +Print all help" COMMAND $<TARGET_FILE:${program}> --help-all)
  endif()
endforeach()
sluice_tool_test(log_one_quota CODE 0
  OUT "6 requests of 2 clients\n\n  time +28 Feb 2024 23:59:58 to 29 Feb 2024 00:00:02 .[+]0100.\n.*8 read, 2 unreadable\n  unreadable +line 5: there is no \\[stamp\\]\n +this line is not a log line\n +line 7: there is no such day in that month\n +192.0.2.7 - - .30/Feb/2024[^\n]*\n  out of order +1 request, put.*busiest minute    28 Feb 2024 23:59, 3 requests\n\n  quota per client.*1/min +2 +4  66.7 % +2  33.3 % +1 +50.0 %.*192.0.2.7 +4 +2  50.0 %"
  COMMAND ${log} ${small} --quota 1/min --burst 2)
sluice_tool_test(log_hardest_hit CODE 0 OUT "refused requests of a client\n[^\n]*\n  192.0.2.7 +4 +3  75.0 %\n$"
  COMMAND ${log} ${small} --quota 1/min --burst 1 --top 1)
sluice_tool_test(log_several_quotas CODE 0 OUT "1/min +2 +4 .*1/s +1 +5 .*60/h +60 +6 .*1/min:2 .*1/s:1 "
  COMMAND ${log} --quota 1/min:2,1/s --quota 60/h ${small})
sluice_tool_test(log_default_quotas CODE 0 OUT "No client was refused anything" COMMAND ${log} ${small})
sluice_tool_test(log_burst_of_default_quotas CODE 0
  OUT "10/min +1 +2 .*30/min +1 +3 .*60/min +1 +5 .*120/min +1 +5 .*10/min:1 .*120/min:1 "
  COMMAND ${log} ${small} --burst 1)
sluice_tool_test(log_burst_of_no_quota CODE 2 ERR "--burst 1: every --quota names a burst of its own"
  COMMAND ${log} ${small} --burst 1 --quota 30/min:10,60/min:20)
sluice_tool_test(log_damaged_tails CODE 0
  OUT "3 requests of 1 client\n.*3 read, 0 unreadable\n  damaged tail +2 requests, counted"
  COMMAND ${log} ${scratch}/cut.log)
# 101 clients behind a server's name, as Apache's vhost_combined writes them, or behind a proxy.
set(hosts "")
set(chains "")
foreach(client RANGE 1 101)
  set(rest "- - [28/Feb/2024:23:59:58 +0100] \"GET / HTTP/1.1\" 200 512 \"-\" \"agent\"\n")
  string(APPEND hosts "www.example.org:443 192.0.2.${client} ${rest}")
  string(APPEND chains "192.0.2.${client}, 10.0.0.1, 10.0.0.2 ${rest}")
endforeach()
file(WRITE "${scratch}/hosts.log" "${hosts}")
file(WRITE "${scratch}/chains.log" "${chains}10.0.0.9 192.0.2.7 - - [28/Feb/2024:23:59:58 +0100] \"GET / HTTP/1.1\" 200 512\n")
sluice_tool_test(log_virtual_hosts CODE 0
  OUT "101 requests of 101 clients\n.*virtual host +101 requests: .*1/min +1 +101 +100.0 % +0 +0.0 %"
  COMMAND ${log} ${scratch}/hosts.log --quota 1/min)
sluice_tool_test(log_forwarded CODE 0
  OUT "101 requests of 101 clients\n.*102 read, 1 unreadable\n +unreadable +line 102: an address stands where [^\n]*\n.*forwarded +101 requests: .*1/min +1 +101 +100.0 %"
  COMMAND ${log} ${scratch}/chains.log --quota 1/min)
sluice_tool_test(log_of_a_sample CODE 0
  OUT "busiest[^\n]*\n\nWARNING: this log may not tell [^\n]*\n +gaps +9 silences, 8h 54m in all; the longest has 59m 20s from 17 May 2015 10:05:50 on\n +sampling +100.0 % of the requests lie in minute 05 of every hour\n +whole minutes +1,000 requests \\(100.0 %\\) come in 10 minutes [^\n]*\n +coarse stamps +all are apart by multiples of 10.0 s.*\n\n  quota per client"
  COMMAND ${log} ${scratch}/sampled.log)
sluice_tool_test(log_standard_input CODE 0 OUT "standard input: 6 requests" INPUT ${small}
  COMMAND ${log} -)
sluice_tool_test(log_missing_file CODE 2 ERR "absent.log: .*No such file" COMMAND ${log} ${scratch}/absent.log)
sluice_tool_test(log_folder CODE 2 ERR "Is a directory" COMMAND ${log} ${scratch})
sluice_tool_test(log_empty CODE 2 ERR "there is nothing in it" COMMAND ${log} ${scratch}/empty.log)
sluice_tool_test(log_nonsense CODE 2 
  ERR "no line of 4 is.*first unreadable +line 1: there is no second field\n +no\n +line 2: [^\n]*\n +line of it\n +line 3: [^\n]*\n +is of\n$"
  COMMAND ${log} ${scratch}/nonsense.log)
sluice_tool_test(log_binary CODE 2 ERR "no line of .* is in the Common" COMMAND ${log} ${demo})
sluice_tool_test(log_no_file CODE 2 ERR "FILE is required" COMMAND ${log})
sluice_tool_test(log_bad_quota CODE 2 ERR "--quota 30/fortnight: .*COUNT/PERIOD"
  COMMAND ${log} ${small} --quota 30/fortnight)
sluice_tool_test(log_zero_quota CODE 2 ERR "--quota 0/min: a quota to try must be a rate, got never"
  COMMAND ${log} ${small} --quota 0/min)
foreach(list "30/min," ",30/min" "30/min,,60/min" ",")
  string(MAKE_C_IDENTIFIER "${list}" name)
  sluice_tool_test(log_empty_quota_${name} CODE 2 ERR "--quota ${list}: there is no quota before, between or after the commas"
    COMMAND ${log} ${small} --quota ${list})
endforeach()
sluice_tool_test(log_bad_burst CODE 2 ERR "--burst" COMMAND ${log} ${small} --quota 1/min --burst 0)
sluice_tool_test(log_too_many_quotas CODE 2 ERR "at most 16 quotas"
  COMMAND ${log} ${small} --quota 1/s,2/s,3/s,4/s,5/s,6/s,7/s,8/s,9/s,10/s,11/s,12/s,13/s,14/s,15/s,16/s,17/s)
sluice_tool_test(log_full_disk CODE 2 ERR "could not be written"
  COMMAND sh -c "exec \"$1\" log \"$2\" >/dev/full" sh $<TARGET_FILE:sluice-sim> ${small})
sluice_tool_test(sim_without_command CODE 2 ERR "subcommand is required" COMMAND $<TARGET_FILE:sluice-sim>)
# The first word that is neither a command nor an option is named, with the nearest that is.
set(sim $<TARGET_FILE:sluice-sim>)
sluice_tool_test(sim_unknown_command CODE 2 ERR "^there is no command \"rnu\"; did you mean run. There are: list, parameters, metrics, run, [^\n]*, log\nRun with --help"
  COMMAND ${sim} rnu fleet --seed 3)
sluice_tool_test(sim_no_command_near CODE 2 ERR "^there is no command \"foo\"; did you mean log. There are: list, parameters, metrics, run, "
  COMMAND ${sim} foo)
sluice_tool_test(sim_unknown_option CODE 2
  ERR "^there is no option \"--replicatons\"; did you mean --replications.\n" COMMAND ${sim} run fleet --replicatons 3)
sluice_tool_test(sim_unknown_option_with_value CODE 2
  ERR "^there is no option \"--Seed=3\"; did you mean --seed.\n" COMMAND ${sim} run fleet --Seed=3)
sluice_tool_test(sim_unknown_option_before_the_command CODE 2
  ERR "^there is no option \"--sede\"; did you mean --seed.\n" COMMAND ${sim} --sede run fleet)
sluice_tool_test(sim_option_before_the_command CODE 2
  ERR "^--seed stands behind the command: sluice-sim run --seed\n" COMMAND ${sim} --seed=3 run fleet)
sluice_tool_test(sim_no_option_near CODE 2 ERR "^there is no option \"--x\"; there are: --help, --set, --seed, "
  COMMAND ${sim} run fleet --x)
sluice_tool_test(log_unknown_option CODE 2 ERR "^there is no option \"--quotas\"; did you mean --quota.\n"
  COMMAND ${log} ${small} --quotas 3/s)
sluice_tool_test(sim_too_many_words CODE 2 ERR "not expected: extra" COMMAND ${sim} run fleet extra)
sluice_tool_test(demo_unknown_option CODE 2 ERR "^there is no option \"--mintues\"; did you mean --minutes.\n"
  COMMAND ${demo} --mintues 3)
sluice_tool_test(sim_help CODE 0 OUT "access log" COMMAND $<TARGET_FILE:sluice-sim> --help)

# Traces of calls.
set(run $<TARGET_FILE:sluice-sim> run)
file(WRITE "${scratch}/back.csv" "t,key\n5,a\n4,a\n")
sluice_tool_test(run_trace CODE 0 OUT "limit = 15/min: at most 1.7 %. it is 1.64 %" COMMAND ${run} your-log)
sluice_tool_test(run_trace_of_a_sample CODE 0
  ERR "WARNING: [^\n]*sampled.log: this log may not tell [^\n]*\n  gaps .*\n.*minute 05 of every hour.*WARNING: [^\n]*: 900 of 1000 calls come after run.duration and are left out; the last comes at 32440s\n"
  COMMAND ${run} your-log --set arrivals.file=${scratch}/sampled.log --set limiter.limit=30/min)
sluice_tool_test(run_trace_that_goes_back CODE 2 ERR "back.csv:3: t goes back from 5 to 4; sort the lines by t"
  COMMAND ${run} your-log --set arrivals.file=${scratch}/back.csv)

# A real log, if the surroundings of the source tree have one.
set(real "${PROJECT_SOURCE_DIR}/../shared/data/apache_access.log")
if(EXISTS "${real}")
  sluice_tool_test(log_real CODE 0
    OUT "10,000 requests of 1,753 clients.*10,000 read, 0 unreadable.*damaged tail +1 request, counted.*WARNING.*gaps +83 silences.*minute 05 of every hour.*in 83 minutes.*30/min +10 +9,741  97.4 % +259 +2.6 %"
    COMMAND ${log} ${real} --quota 30/min --burst 10)
endif()

if(NOT SLUICE_SANITIZE)  # which makes minutes of it; test_algorithms_threads has such threads
  sluice_tool_test(demo_fleet_and_threads CODE 0
    OUT "no limiter .*per process +0 %.*shared +0 %.*trace hash.*seed 3;.*real threads.*The quota was kept.*redis-outage: .*local"
    COMMAND ${demo} --seed 3 --minutes 2)
  sluice_realtime(tool_demo_fleet_and_threads)
  sluice_tool_test(demo_seed_is_decimal CODE 0 OUT "seed 10;" COMMAND ${demo} --seed 010 --minutes 1 --workers 5)
endif()
sluice_tool_test(demo_file CODE 0 OUT "6 requests of 2 clients.*10/min.*120/min" COMMAND ${demo} ${small})
sluice_tool_test(demo_no_minutes CODE 2 ERR "--minutes: Value 0 not in range "
  COMMAND ${demo} --minutes 0)
sluice_tool_test(demo_too_many_workers CODE 2 ERR "--workers: Value 2001 not in range "
  COMMAND ${demo} --workers 2001)
foreach(seed minus -1 +1 0x10 1.5 18446744073709551616)
  sluice_tool_test(demo_bad_seed_${seed} CODE 2
    ERR "--seed: .*must be 0 to 18446744073709551615, got [${seed}]+\nRun with --help" COMMAND ${demo} --seed ${seed})
endforeach()
sluice_tool_test(demo_redis_and_file CODE 2 ERR "excludes" COMMAND ${demo} --redis ${small})
if(SLUICE_REDIS)
  sluice_tool_test(demo_redis CODE 0 OUT "4 real processes.*admitted.*The quota was kept" COMMAND ${demo} --redis)
  set_tests_properties(tool_demo_redis PROPERTIES LABELS "redis;realtime")
  sluice_tool_test(demo_redis_without_server CODE 1 ERR "needs redis-server or valkey-server in PATH"
    COMMAND "${CMAKE_COMMAND}" -E env --unset=SLUICE_REDIS_SERVER PATH=/nonexistent ${demo} --redis)
  sluice_tool_test(demo_redis_broken_server CODE 2 ERR "ended at once"
    COMMAND "${CMAKE_COMMAND}" -E env SLUICE_REDIS_SERVER=/bin/false ${demo} --redis)
else()
  sluice_tool_test(demo_redis_left_out CODE 2 ERR "without the Redis store" COMMAND ${demo} --redis)
endif()
