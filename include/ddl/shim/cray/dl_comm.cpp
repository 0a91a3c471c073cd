// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/cray/broadcast.hpp>
#include <ddl/shim/cray/error_line.hpp>
#include <ddl/shim/cray/team.hpp>
#include <ddl/shim/dl_comm.h>
#include <ddl/shim/process_end.hpp>
#include <ddl/transport/staging_shape.hpp>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

using ddl::shim::piece;
using ddl::shim::team;
using namespace ddl::shim::cray;

namespace {

/// What this process has of the plugin. Its world and its teams are looked at under `changes`, which nobody holds while he waits
/// for peers; who makes or ends them holds `making`, too.
struct plugin {
    std::mutex making;
    std::mutex changes;
    ddl_communicator* world = nullptr;
    bool started = false;
    bool finalized = false;
    bool has_teams_of_its_own = false;  // some team was asked for by dl_create_team
    std::map<int, std::shared_ptr<team>> teams;

    static plugin& here() {
        static plugin& kept = *new plugin;  // stays: other threads may still call while the process ends
        return kept;
    }

    /// The ranks; nullptr if nobody has met them, or, if `running`, while the plugin is not started.
    ddl_communicator* ranks(bool running) {
        const std::lock_guard lock{changes};
        return running && !started ? nullptr : world;
    }
    bool has(int id) {
        const std::lock_guard lock{changes};
        return teams.contains(id);
    }
    /// The team of that number. While dl_create_team has made none, there is one team for all numbers, once there is any.
    std::shared_ptr<team> find(int id) {
        const std::lock_guard lock{changes};
        if (!has_teams_of_its_own && id >= 0 && !teams.empty()) return teams.begin()->second;
        const auto found = teams.find(id);
        return found == teams.end() ? nullptr : found->second;
    }
};

/// Whether all ranks call with this form; if not, a line says which rank does not, and `advice`.
bool all_call_alike(const char* function, ddl_communicator* ranks, const ddl::shim::form& ours, const char* advice) {
    int other = -1;
    if (outcome(function, ddl::shim::compare(ranks, ours, other)) != 0) return false;
    if (other < 0) return true;
    failed(function, "rank " + std::to_string(ddl_get_rank(ranks)) + ": rank " + std::to_string(other) + " " + advice);
    return false;
}

int outcome_of_all(const char* function, const ddl::shim::first_failure& result) {
    return result.status == DDL_OK ? 0 : failed(function, result.words);
}

/// What is wrong with an environment variable that is to be a number from `least` to `most`; empty if nothing is. An unset one leaves
/// `value` as it is.
std::string complaint_of(const char* variable, int least, int most, int& value) {
    const char* const words = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nothing here sets any
    if (words == nullptr || *words == '\0') return {};
    char* end = nullptr;
    const long number = std::strtol(words, &end, 10);
    if (*end == '\0' && number >= least && number <= most) {
        value = static_cast<int>(number);
        return {};
    }
    return std::string{variable} + " is \"" + std::string{words}.substr(0, 40) + "\"; it takes a number from " +
           std::to_string(least) + " to " + std::to_string(most);
}

/// Fails on all ranks with the complaint of the lowest rank that has one. All ranks of `ranks` call it.
int outcome_of_complaints(const char* function, ddl_communicator* ranks, const std::string& ours) {
    const int size = ddl_get_size(ranks);
    std::int64_t speaker = ours.empty() ? 0 : size - ddl_get_rank(ranks);
    if (const int status = outcome(function, ddl_run_allreduce(ranks, &speaker, &speaker, 1, DDL_INT64, DDL_MAXIMUM)))
        return status;
    if (speaker == 0) return 0;
    const int root = size - static_cast<int>(speaker);
    char words[160] = {};
    ours.copy(words, sizeof words - 1);
    if (const int status = outcome(function, ddl_run_broadcast(ranks, words, sizeof words, DDL_UINT8, root)))
        return status;
    return failed(function, "rank " + std::to_string(root) + ": " + words);
}

constexpr const char* not_started = "the plugin is not started; call dl_comm_init first";
constexpr const char* other_lists = "brings other lists; pass equal lengths and types on every rank";
constexpr const char* other_team_or_lists =
    "names another team or brings other lists; pass equal teams, lengths and types on every rank";
constexpr int most_threads = 1024;
constexpr int most_elements = 6;
constexpr ddl_element elements[most_elements] = {DDL_FLOAT, DDL_DOUBLE, DDL_HALF, DDL_BFLOAT16, DDL_INT32, DDL_INT64};

/// The lists of a call as pieces, tower by tower. False, with a line, if they make no sense.
bool read_lists(const char* function, void*** tensors, int** lengths, dlDataType_t** types, const int* counts,
                int towers, std::vector<piece>& pieces) {
    const auto complain = [&](const std::string& words) { return failed(function, words) == 0; };
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

/// Makes a team; all ranks do. `by_program`: dl_create_team does, so numbers are those of teams from here on, for other threads in
/// the same moment. `making` is held.
int make_team(plugin& here, const char* function, int id, int threads, int precision, bool by_program) {
    ddl_communicator* const world = here.ranks(true);
    if (world == nullptr) return failed(function, not_started);
    const auto refused = [&](const char* words) {
        ddl::shim::refuse(world);
        return failed(function, words);
    };
    if (id < 0) return refused("teams count from 0");
    if (here.has(id)) return refused("there is a team of that number; make each once");
    if (threads < 1 || threads > most_threads) return refused("a team has 1 to 1024 threads");
    if (precision != 0 && precision != 1) return refused("prec_level is 0 for float or 1 for double");
    if (!all_call_alike(function, world, {id, threads, precision},
                        "makes another team; pass equal numbers on every rank"))
        return -1;
    auto made = std::make_shared<team>(precision == 1);
    for (int thread = 0; thread < threads; ++thread)
        if (const ddl_status status = made->add_thread(world)) return outcome(function, status);
    const std::lock_guard lock{here.changes};
    here.teams[id] = std::move(made);
    here.has_teams_of_its_own |= by_program;
    return 0;
}

int create_team(const char* function, int id, int threads, int precision) {
    return guarded(function, [&] {
        plugin& here = plugin::here();
        const std::lock_guard lock{here.making};
        return make_team(here, function, id, threads, precision, true);
    });
}

/// This rank calls for a team that is none, so nobody knows in which one the others wait. If there is a single one, its call is
/// refused, and it goes on; else all of them end here.
void refuse_for_no_team(plugin& here) {
    std::map<int, std::shared_ptr<team>> teams;
    ddl_communicator* world = nullptr;
    {
        const std::lock_guard lock{here.changes};
        teams = here.teams;
        world = here.world;
    }
    if (ddl_get_size(world) < 2) return;
    if (teams.empty()) return ddl::shim::refuse(world);
    if (teams.size() == 1) return teams.begin()->second->refuse();
    for (const auto& [id, each] : teams) each->end();
}

/// The team of that number; if dl_create_team made none, one as the environment says. nullptr, with a line, if that fails.
std::shared_ptr<team> find_team(plugin& here, const char* function, int id) {
    if (std::shared_ptr<team> found = here.find(id)) return found;
    std::unique_lock lock{here.making};
    if (std::shared_ptr<team> found = here.find(id)) return found;
    ddl_communicator* const world = here.ranks(true);
    if (world == nullptr) {
        failed(function, not_started);
        return nullptr;
    }
    if (id < 0 || here.has_teams_of_its_own) {
        lock.unlock();
        refuse_for_no_team(here);
        failed(function,
               "there is no team " + std::to_string(id) + "; pass the number of one that dl_create_team made");
        return nullptr;
    }
    int threads = 2;
    int precision = 0;
    std::string wrong = complaint_of("DL_COMM_DEFAULT_NTHREADS", 1, most_threads, threads);
    if (wrong.empty()) wrong = complaint_of("DL_COMM_DEFAULT_PREC_LEVEL", 0, 1, precision);
    if (!wrong.empty()) {
        ddl::shim::refuse(world);
        failed(function, wrong);
        return nullptr;
    }
    return make_team(here, function, id, threads, precision, false) == 0 ? here.find(id) : nullptr;
}

/// When the process ends, which it may do without `dl_comm_finalize`.
void leave(int status) noexcept {
    plugin& here = plugin::here();
    const std::unique_lock lock{here.changes, std::try_to_lock};  // a thread that has it may never give it back now
    if (!lock || here.world == nullptr) return;
    for (const auto& [id, each] : here.teams) each->tell_of_end(status);
    ddl::shim::tell_of_end(here.world, status);
}

/// Meets the other processes if nobody did. `making` is held.
int meet(plugin& here, const char* function) {
    if (here.finalized) return failed(function, "the plugin was finalized; start it once, and end it last");
    if (here.ranks(false) != nullptr) return 0;
    ddl_communicator* opened = nullptr;
    if (const int status = outcome(function, ddl_open_environment(&opened))) return status;
    ddl::shim::at_end_of_this_process<leave>();
    const std::lock_guard lock{here.changes};
    here.world = opened;
    return 0;
}

}  // namespace

extern "C" {

DDL_API int dl_comm_init_mpi(void) {
    plugin& here = plugin::here();
    const std::lock_guard lock{here.making};
    return meet(here, "dl_comm_init_mpi");
}

DDL_API int dl_comm_init(void) {
    plugin& here = plugin::here();
    const std::lock_guard lock{here.making};
    if (here.started) return failed("dl_comm_init", "the plugin is started already; call it once");
    if (const int status = meet(here, "dl_comm_init")) return status;
    // libddl goes by them once a tensor lies in a device: read here, so that a mistake in them is told everywhere
    return guarded("dl_comm_init", [&] {
        using shape = ddl::staging_shape;
        int number = 0;
        std::string wrong = complaint_of("DL_COMM_PIPELINE_CHUNK_KB", 1, shape::most_kilobytes, number);
        if (wrong.empty()) wrong = complaint_of("DL_COMM_NUM_CUDA_STREAMS", 1, shape::most_streams, number);
        if (outcome_of_complaints("dl_comm_init", here.ranks(false), wrong) != 0) return -1;
        const std::lock_guard change{here.changes};
        here.started = true;
        return 0;
    });
}

DDL_API int dl_comm_finalize(void) {
    plugin& here = plugin::here();
    const std::lock_guard lock{here.making};
    std::map<int, std::shared_ptr<team>> teams;
    ddl_communicator* world = nullptr;
    {
        const std::lock_guard change{here.changes};
        teams.swap(here.teams);
        world = std::exchange(here.world, nullptr);
        here.started = false;
        here.finalized = true;
    }
    teams.clear();
    return outcome("dl_comm_finalize", ddl_close(world));
}

DDL_API int dl_create_team(int id, int threads, int precision) {
    return create_team("dl_create_team", id, threads, precision);
}
DDL_API int dl_comm_create_team(int id, int threads, int precision) {
    return create_team("dl_comm_create_team", id, threads, precision);
}

DDL_API int dl_comm_gradients(void*** tensors, int** lengths, dlDataType_t** types, int* counts, int towers, int id) {
    return guarded("dl_comm_gradients", [&] {
        constexpr const char* function = "dl_comm_gradients";
        const std::shared_ptr<team> threads = find_team(plugin::here(), function, id);
        if (threads == nullptr) return -1;
        std::vector<piece> pieces;
        const bool sensible = read_lists(function, tensors, lengths, types, counts, towers, pieces);
        if (!sensible || threads->ended()) {
            threads->refuse();
            return sensible ? failed(function, "this rank has named a team that is none, which ended all; start again")
                            : -1;
        }
        ddl::shim::form ours{pieces};
        ours.add(static_cast<std::uint64_t>(id));
        if (!all_call_alike(function, threads->control(), ours, other_team_or_lists)) return -1;
        return outcome_of_all(function, threads->average(pieces));
    });
}

DDL_API int dl_comm_broadcast(void*** tensors, int** lengths, dlDataType_t** types, int* counts, int towers, int root) {
    return guarded("dl_comm_broadcast", [&] {
        constexpr const char* function = "dl_comm_broadcast";
        ddl_communicator* const world = plugin::here().ranks(true);
        if (world == nullptr) return failed(function, not_started);
        std::vector<piece> pieces;
        if (!read_lists(function, tensors, lengths, types, counts, towers, pieces)) {
            ddl::shim::refuse(world);
            return -1;
        }
        if (!all_call_alike(function, world, ddl::shim::form{pieces}, other_lists)) return -1;
        return outcome_of_all(function, ddl::shim::broadcast(world, pieces, root));
    });
}

DDL_API int dl_comm_get_rank(void) { return ddl_get_rank(plugin::here().ranks(false)); }
DDL_API int dl_comm_localrank(void) { return ddl_get_local_rank(plugin::here().ranks(false)); }
DDL_API int dl_comm_get_nranks(void) { return ddl_get_size(plugin::here().ranks(false)); }

DDL_API const char* dl_comm_last_error(void) { return last_words().c_str(); }

DDL_API int dl_comm_refuse_gradients(int id) {
    constexpr const char* function = "dl_comm_refuse_gradients";
    return guarded(function, [&] {
        plugin& here = plugin::here();
        if (here.ranks(true) == nullptr) return failed(function, not_started);
        if (id < 0) {
            refuse_for_no_team(here);
            return 0;
        }
        const std::shared_ptr<team> threads = find_team(here, function, id);
        if (threads == nullptr) return -1;
        threads->refuse();
        return 0;
    });
}
DDL_API int dl_comm_refuse_broadcast(void) {
    ddl_communicator* const world = plugin::here().ranks(true);
    if (world == nullptr) return failed("dl_comm_refuse_broadcast", not_started);
    ddl::shim::refuse(world);
    return 0;
}

}  // extern "C"
