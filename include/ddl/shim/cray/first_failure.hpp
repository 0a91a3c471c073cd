// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/ddl.h>

#include <string>

namespace ddl::shim {

/// The first failure of a call that consists of several exchanges, all of which this rank takes part in whatever became of those
/// before: its peers do.
struct first_failure {
    ddl_status status = DDL_OK;
    std::string words;

    void keep(ddl_status next) { keep(next, next == DDL_OK ? "" : ddl_last_error()); }
    void keep(ddl_status next, const char* its_words) {
        if (status != DDL_OK || next == DDL_OK) return;
        status = next;
        words = its_words;
    }
};

}  // namespace ddl::shim
