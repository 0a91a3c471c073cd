// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/cray/team.hpp>
#include <ddl/shim/dl_comm.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

using ddl::shim::piece;
using ddl::shim::team;

namespace {

struct plugin {
    std::recursive_mutex changes;
    ddl_communicator* world = nullptr;
    bool started = false;
    bool finalized = false;
    std::map<int, std::unique_ptr<team>> teams;

    static plugin& here() {
        static plugin& kept = *new plugin;  // stays: other threads may still call while the process ends
        return kept;
    }
};

int failed(const char* function, const char* words) noexcept {
    std::fprintf(stderr, "dl_comm: %s: %s\n", function, words);
    return -1;
}
int outcome(const char* function, ddl_status status) noexcept {
    return status == DDL_OK ? 0 : failed(function, ddl_last_error());
}

/// Runs `body`; between C and here nothing is thrown.
template <class Body>
int guarded(const char* function, Body body) noexcept {
    try {
        return body();
    } catch (const std::exception& failure) { return failed(function, failure.what()); }
}

/// What an environment variable says, `otherwise` if it is unset; negative, with a line, if it is no number from `least` to `most`.
int number(const char* variable, int least, int most, int otherwise) noexcept {
    const char* const words = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nothing here sets any
    if (words == nullptr || *words == '\0') return otherwise;
    char* end = nullptr;
    const long value = std::strtol(words, &end, 10);
    if (*end == '\0' && value >= least && value <= most) return static_cast<int>(value);
    std::fprintf(stderr, "dl_comm: %s is \"%.40s\"; it takes a number from %d to %d\n", variable, words, least, most);
    return -1;
}

constexpr int most_threads = 1024;
constexpr int most_elements = 6;
constexpr ddl_element elements[most_elements] = {DDL_FLOAT, DDL_DOUBLE, DDL_HALF, DDL_BFLOAT16, DDL_INT32, DDL_INT64};

/// The lists of a call as pieces, tower by tower. False, with a line, if they make no sense.
bool read_lists(const char* function, void*** tensors, int** lengths, dlDataType_t** types, const int* counts,
                int towers, std::vector<piece>& pieces) {
    const auto complain = [&](const std::string& words) { return failed(function, words.c_str()) == 0; };
    if (towers < 0) return complain("ntowers is " + std::to_string(towers) + "; pass 0 or more");
    if (towers > 0 && (tensors == nullptr || lengths == nullptr || types == nullptr || counts == nullptr))
        return complain("a list of towers is NULL");
    for (int tower = 0; tower < towers; ++tower) {
        const std::string where = "tower " + std::to_string(tower);
        if (counts[tower] < 0)
            return complain(where + " has " + std::to_string(counts[tower]) + " tensors; pass 0 or more");
        if (counts[tower] > 0 && (tensors[tower] == nullptr || lengths[tower] == nullptr || types[tower] == nullptr))
            return complain("a list of " + where + " is NULL");
        for (int i = 0; i < counts[tower]; ++i) {
            const std::string which = where + ", tensor " + std::to_string(i);
            const int type = static_cast<int>(types[tower][i]);
            if (type < 0 || type >= most_elements)
                return complain(which + " has type " + std::to_string(type) + "; pass one of dlDataType_t");
            if (lengths[tower][i] < 0)
                return complain(which + " has length " + std::to_string(lengths[tower][i]) + "; pass 0 or more");
            if (lengths[tower][i] > 0 && tensors[tower][i] == nullptr) return complain(which + " is NULL");
            pieces.push_back({tensors[tower][i], static_cast<std::size_t>(lengths[tower][i]), elements[type]});
        }
    }
    return true;
}

/// Makes a team; all ranks do. The lock is held.
int make_team(plugin& here, const char* function, int id, int threads, int precision) {
    if (!here.started) return failed(function, "the plugin is not started; call dl_comm_init first");
    if (id < 0) return failed(function, "teams count from 0");
    if (here.teams.count(id) != 0) return failed(function, "there is a team of that number; make each once");
    if (threads < 1 || threads > most_threads) return failed(function, "a team has 1 to 1024 threads");
    if (precision != 0 && precision != 1) return failed(function, "prec_level is 0 for float or 1 for double");
    auto made = std::make_unique<team>(precision == 1);
    for (int thread = 0; thread < threads; ++thread)
        if (const ddl_status status = made->add_thread(here.world)) return outcome(function, status);
    here.teams[id] = std::move(made);
    return 0;
}

/// The team of that number; if nobody made it, one as the environment says. nullptr, with a line, if that fails.
team* find_team(plugin& here, const char* function, int id) {
    const std::lock_guard lock{here.changes};
    const auto found = here.teams.find(id);
    if (found != here.teams.end()) return found->second.get();
    const int threads = number("DL_COMM_DEFAULT_NTHREADS", 1, most_threads, 2);
    const int precision = number("DL_COMM_DEFAULT_PREC_LEVEL", 0, 1, 0);
    if (threads < 0 || precision < 0 || make_team(here, function, id, threads, precision) != 0) return nullptr;
    return here.teams[id].get();
}

}  // namespace

extern "C" {

DDL_API int dl_comm_init_mpi(void) {
    plugin& here = plugin::here();
    const std::lock_guard lock{here.changes};
    if (here.finalized) return failed("dl_comm_init_mpi", "the plugin was finalized; start it once, and end it last");
    return here.world != nullptr ? 0 : outcome("dl_comm_init_mpi", ddl_open_environment(&here.world));
}

DDL_API int dl_comm_init(void) {
    plugin& here = plugin::here();
    const std::lock_guard lock{here.changes};
    if (here.started) return failed("dl_comm_init", "the plugin is started already; call it once");
    if (const int status = dl_comm_init_mpi()) return status;
    // libddl goes by them once a tensor lies in a device: read here, so that a mistake in them is told everywhere
    if (number("DL_COMM_PIPELINE_CHUNK_KB", 1, 1 << 30, 256) < 0 || number("DL_COMM_NUM_CUDA_STREAMS", 1, 1024, 1) < 0)
        return -1;
    here.started = true;
    return 0;
}

DDL_API int dl_comm_finalize(void) {
    plugin& here = plugin::here();
    const std::lock_guard lock{here.changes};
    here.teams.clear();
    here.started = false;
    here.finalized = true;
    return outcome("dl_comm_finalize", ddl_close(std::exchange(here.world, nullptr)));
}

DDL_API int dl_create_team(int id, int threads, int precision) {
    return guarded("dl_create_team", [&] {
        plugin& here = plugin::here();
        const std::lock_guard lock{here.changes};
        return make_team(here, "dl_create_team", id, threads, precision);
    });
}
DDL_API int dl_comm_create_team(int id, int threads, int precision) { return dl_create_team(id, threads, precision); }

DDL_API int dl_comm_gradients(void*** tensors, int** lengths, dlDataType_t** types, int* counts, int towers, int id) {
    return guarded("dl_comm_gradients", [&] {
        constexpr const char* function = "dl_comm_gradients";
        team* const threads = find_team(plugin::here(), function, id);
        if (threads == nullptr) return -1;
        std::vector<piece> pieces;
        const bool sensible = read_lists(function, tensors, lengths, types, counts, towers, pieces);
        bool agreed = false;
        if (const ddl_status status = threads->agree(pieces, sensible, agreed)) return outcome(function, status);
        if (!sensible) return -1;
        if (!agreed)
            return failed(function, "another rank brings other lists; pass equal lengths and types on every rank");
        return outcome(function, threads->average(pieces));
    });
}

DDL_API int dl_comm_broadcast(void*** tensors, int** lengths, dlDataType_t** types, int* counts, int towers, int root) {
    return guarded("dl_comm_broadcast", [&] {
        plugin& here = plugin::here();
        const std::lock_guard lock{here.changes};
        if (!here.started) return failed("dl_comm_broadcast", "the plugin is not started; call dl_comm_init first");
        std::vector<piece> pieces;
        if (!read_lists("dl_comm_broadcast", tensors, lengths, types, counts, towers, pieces)) {
            ddl_run_broadcast(here.world, nullptr, 1, DDL_FLOAT, 0);  // lets the peers know, who wait for this rank
            return -1;
        }
        for (const piece& one : pieces)
            if (const ddl_status status = ddl_run_broadcast(here.world, one.data, one.count, one.element, root))
                return outcome("dl_comm_broadcast", status);
        return 0;
    });
}

DDL_API int dl_comm_get_rank(void) { return ddl_get_rank(plugin::here().world); }
DDL_API int dl_comm_localrank(void) { return ddl_get_local_rank(plugin::here().world); }
DDL_API int dl_comm_get_nranks(void) { return ddl_get_size(plugin::here().world); }

}  // extern "C"
