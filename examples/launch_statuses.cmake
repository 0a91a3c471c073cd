# SPDX-License-Identifier: Apache-2.0
# What `launch` says of its ranks: nothing when all succeed, else the status of the first that failed. Each case is also run
# with a shell whose `wait -n` forgets the status that it waited for, as bash does now and then when processes end together.
function(expect status ranks_do)
  foreach(forgets IN ITEMS "" "wait() { builtin wait \"$@\"; local status=$?; [ \"$1\" = -n ] && return 127; return $status; }; export -f wait; ")
    execute_process(COMMAND bash -c "${forgets}exec '${LAUNCH}' 3 sh -c '${ranks_do}'" RESULT_VARIABLE ended)
    if(NOT ended EQUAL status)
      message(SEND_ERROR "ranks that do '${ranks_do}' give ${ended} instead of ${status} (${forgets})")
    endif()
  endforeach()
endfunction()
expect(0 "exit 0")
expect(0 "sleep 0.$RANK")
expect(7 "[ $RANK = 0 ] && exit 7; exec sleep 100")
expect(7 "[ $RANK = 2 ] && exit 7; exec sleep 100")
expect(127 "exec ./no_such_program")
