# SPDX-License-Identifier: Apache-2.0
# A library with a face in C, made of explicit instantiations.
#
#   ddl_add_shim(<target> OPS <op>... ELEMENTS <element>... SCHEDULES <schedule>... TRANSPORTS <transport>...
#                [COLLECTIVES allreduce reduce_scatter reduce] [HEADERS <header>...] [SOURCES <file>...]
#                [EXPORTS <pattern>...] [VERSION <version>] [SOVERSION <number>]
#                [COMPANION <file name> | COMPANION_OF <target>])
#
# writes into the build tree, for each transport and element, a unit that holds
#     template class ddl::allreduce_plan<op, element, schedule, transport>;
# for each op and schedule, the collectives that only move data, and a row of the dispatch table for each of them; and
# makes a shared library of these units that exports the functions of <ddl/shim/ddl.h>, and of its other names that begin with ddl_
# those that pyddl and a companion ask for.
#
#   ddl_extend_shim(<target> OPS ... ELEMENTS ... SCHEDULES ... TRANSPORTS ... [COLLECTIVES ...])    adds to it.
#
# All are names of C++, your own as good as ours. HEADERS declare yours, written as in an include line: ops.hpp or
# <mine/ops.hpp>. COLLECTIVES: those of the ops, all three by default; name fewer for a schedule that has no halves.
# EXPORTS: more symbols, of SOURCES. A COMPANION is the library beside this one that holds what needs MPI, loaded when
# MPI is there; COMPANION_OF makes one.
include_guard(GLOBAL)

# What `function(target ...)` was given must begin with a keyword, and have these lists.
macro(ddl_require_shim_lists function)
  if(shim_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function}(${target}): '${shim_UNPARSED_ARGUMENTS}' follows no keyword; "
      "write OPS, ELEMENTS, SCHEDULES, TRANSPORTS before a list")
  endif()
  foreach(needed IN ITEMS ${ARGN})
    if(NOT shim_${needed})
      message(FATAL_ERROR "${function}(${target}): no ${needed}; name at least one")
    endif()
  endforeach()
endmacro()

function(ddl_add_shim target)
  cmake_parse_arguments(PARSE_ARGV 1 shim "" "VERSION;SOVERSION;COMPANION;COMPANION_OF"
    "OPS;ELEMENTS;SCHEDULES;TRANSPORTS;COLLECTIVES;HEADERS;SOURCES;EXPORTS")
  ddl_require_shim_lists(ddl_add_shim OPS ELEMENTS SCHEDULES TRANSPORTS)
  if(NOT shim_VERSION)
    set(shim_VERSION 0.1.0)
  endif()
  if(NOT shim_SOVERSION)
    string(REGEX MATCH "^[0-9]+" shim_SOVERSION "${shim_VERSION}")
  endif()

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.shim")
  set(includes "")
  foreach(header IN LISTS shim_HEADERS)
    if(NOT header MATCHES "^[<\"]")
      set(header "\"${header}\"")
    endif()
    string(APPEND includes "#include ${header}\n")
  endforeach()
  foreach(transport IN LISTS shim_TRANSPORTS)
    if(transport MATCHES "^(::)?ddl::(.*)$")
      string(APPEND includes "#include <ddl/transport/${CMAKE_MATCH_2}.hpp>\n")
    endif()
  endforeach()

  add_library(${target} SHARED ${shim_SOURCES})
  set_target_properties(${target} PROPERTIES DDL_SHIM_INCLUDES "${includes}" DDL_SHIM_UNITS ""
    DDL_SHIM_TRANSPORTS "${shim_TRANSPORTS}"
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF
    VERSION "${shim_VERSION}" SOVERSION "${shim_SOVERSION}"
    BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(${target} PUBLIC ddl::ddl PRIVATE ${CMAKE_DL_LIBS})
  target_compile_definitions(${target} PRIVATE "DDL_SHIM_VERSION=\"${shim_VERSION}\""
    "DDL_SHIM_COMPANION=\"${shim_COMPANION}\"")
  target_compile_options(${target} PRIVATE "$<$<CONFIG:>:-O2>")  # without a build type: nobody wants it slow

  set(openers "")
  foreach(transport IN LISTS shim_TRANSPORTS)
    if(transport MATCHES "^(::)?ddl::(mpi|cluster)$")
      string(APPEND includes "#include <ddl/shim/opener_by_mpi.hpp>\n")
      string(APPEND openers "opener_by_mpi<${transport}>(), ")
      target_link_libraries(${target} PRIVATE ddl::mpi)
    else()
      string(APPEND openers "opener_of<${transport}>(), ")
    endif()
  endforeach()
  set(faces "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/face")  # functions are known in every folder, variables of this file in one
  set(exports ${shim_EXPORTS})
  if(shim_COMPANION_OF)
    list(APPEND exports ddl_companion)
    target_sources(${target} PRIVATE "${faces}/as_companion.cpp")
    target_link_libraries(${target} PRIVATE ${shim_COMPANION_OF})
  else()
    list(APPEND exports "ddl_*")
    foreach(source IN ITEMS communicators companion device_memory examine memory movable names numpy plan python requests
        run staging start)
      target_sources(${target} PRIVATE "${faces}/${source}.cpp")
    endforeach()
  endif()
  ddl_write_shim_file(${target} "${folder}/openers.cpp" "// Written by ddl_add_shim.
${includes}#include <ddl/shim/over_transport.hpp>

std::span<const ddl::shim::opener> ddl::shim::openers() noexcept {
    static constexpr opener ours[] = {${openers}};
    return ours;
}
")
  list(JOIN exports "; " globals)
  file(CONFIGURE OUTPUT "${folder}/exports.map" CONTENT "{ global: ${globals}; local: *; };\n" @ONLY)
  # bound to itself: in a program with several such libraries each calls its own functions
  target_link_options(${target} PRIVATE "-Wl,--version-script=${folder}/exports.map" "-Wl,-Bsymbolic"
    "-Wl,--no-undefined" "-Wl,-z,nodelete")  # threads of communicators that are open run in it
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${folder}/exports.map")

  ddl_extend_shim(${target} OPS ${shim_OPS} ELEMENTS ${shim_ELEMENTS} SCHEDULES ${shim_SCHEDULES}
    TRANSPORTS ${shim_TRANSPORTS} COLLECTIVES ${shim_COLLECTIVES})
  cmake_language(EVAL CODE "cmake_language(DEFER CALL ddl_write_shim_units ${target})")
endfunction()

function(ddl_extend_shim target)
  cmake_parse_arguments(PARSE_ARGV 1 shim "" "" "OPS;ELEMENTS;SCHEDULES;TRANSPORTS;COLLECTIVES")
  ddl_require_shim_lists(ddl_extend_shim OPS ELEMENTS SCHEDULES)
  if(NOT shim_TRANSPORTS)
    get_target_property(shim_TRANSPORTS ${target} DDL_SHIM_TRANSPORTS)
  endif()
  if(NOT shim_COLLECTIVES)
    set(shim_COLLECTIVES allreduce reduce_scatter reduce)
  endif()
  get_target_property(units ${target} DDL_SHIM_UNITS)
  foreach(transport IN LISTS shim_TRANSPORTS)
    foreach(element IN LISTS shim_ELEMENTS)
      list(FIND units "${element} over ${transport}" unit)
      set(plans "")
      set(rows "")
      if(unit EQUAL -1)
        list(LENGTH units unit)
        list(APPEND units "${element} over ${transport}")
        foreach(collective IN ITEMS all_gather broadcast gather scatter all_to_all)
          ddl_shim_row(${collective} "" "${element}" ddl::tuned "${transport}")
        endforeach()
      endif()
      foreach(schedule IN LISTS shim_SCHEDULES)
        foreach(op IN LISTS shim_OPS)
          foreach(collective IN LISTS shim_COLLECTIVES)
            ddl_shim_row(${collective} "${op}" "${element}" "${schedule}" "${transport}")
          endforeach()
        endforeach()
      endforeach()
      set_property(TARGET ${target} APPEND_STRING PROPERTY DDL_SHIM_PLANS_${unit} "${plans}")
      set_property(TARGET ${target} APPEND_STRING PROPERTY DDL_SHIM_ROWS_${unit} "${rows}")
    endforeach()
  endforeach()
  set_property(TARGET ${target} PROPERTY DDL_SHIM_UNITS "${units}")
endfunction()

# Writes the units, once all lists are known: at the end of the folder that made the target.
function(ddl_write_shim_units target)
  get_target_property(includes ${target} DDL_SHIM_INCLUDES)
  get_target_property(units ${target} DDL_SHIM_UNITS)
  set(number 0)
  foreach(unit IN LISTS units)
    get_target_property(plans ${target} DDL_SHIM_PLANS_${number})
    get_target_property(rows ${target} DDL_SHIM_ROWS_${number})
    ddl_write_shim_file(${target} "${CMAKE_CURRENT_BINARY_DIR}/${target}.shim/unit_${number}.cpp"
      "// Written by ddl_add_shim: ${unit}.
${includes}#include <ddl/shim/extents.hpp>
#include <ddl/shim/registry.hpp>

${plans}
namespace {
using ddl::collective;
using ddl::shim::row_of;
constexpr ddl::shim::row rows[] = {
${rows}};
const ddl::shim::registration here{rows};
}  // namespace
")
    math(EXPR number "${number} + 1")
  endforeach()
endfunction()

# Adds a plan and its rows to `plans` and `rows` of the caller.
macro(ddl_shim_row collective op element schedule transport)
  if("${op}" STREQUAL "")
    set(plan "ddl::${collective}_plan<${element}, ${schedule}, ${transport}>")
    set(op_name "nullptr")
  else()
    set(plan "ddl::${collective}_plan<${op}, ${element}, ${schedule}, ${transport}>")
    set(op_name "\"${op}\"")
  endif()
  string(APPEND plans "template class ${plan};\n")
  set(forms ${collective})
  if("${collective}" STREQUAL "allreduce")
    list(APPEND forms allreduce_n)
  endif()
  foreach(form IN LISTS forms)
    string(APPEND rows "    row_of<collective::${form}, ${plan}>(\n"
      "        ${transport}::name, \"${element}\", ${op_name}, \"${schedule}\"),\n")
  endforeach()
endmacro()

# A source of `target`; one that stands already with this text keeps its time stamp.
function(ddl_write_shim_file target file text)
  file(CONFIGURE OUTPUT "${file}" CONTENT "${text}" @ONLY)
  target_sources(${target} PRIVATE "${file}")
endfunction()
