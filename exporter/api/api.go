package api

import (
	"slices"
	"time"
)

// Paths of the exporter's socket.
const (
	PathNode     = "/v1/node"             // GET Node
	PathJobs     = "/v1/jobs"             // GET []Job
	PathSamples  = "/v1/jobs/{id}/window" // GET Window; id or manager%2Fid; ?after=SEQ leaves out older samples; ?attempt=N
	PathProgress = "/v1/progress"         // POST Report, as JSON or as words → 204; where the caller runs names the job
	// PUT Budget → 204, as JSON or as words, for a caller who sees the job; {id} and ?attempt=N
	// as for PathSamples.
	PathBudget = "/v1/jobs/{id}/budget"
	// POST Report → 204, for root and readers alone; {id} as for PathSamples, ?attempt=N.
	PathReport = "/v1/jobs/{id}/progress"
)

// EnvSocket names the exporter's socket to a job that reports its progress itself.
// The starter of the job sets it: the local scheduler, or Slurm's TaskProlog.
const EnvSocket = "PITCHPIPE_EXPORTER"

// DefaultSocket is where the exporter listens by default.
const DefaultSocket = "/run/pitchpipe/exporter.sock"

// Support is a probe's answer.
type Support string

// The three answers, which are three different things.
const (
	Supported   Support = "supported"
	Unsupported Support = "unsupported"
	Denied      Support = "denied"
)

// Source is one thing that the node can or cannot measure.
type Source struct {
	Name    string  `json:"name"` // such as perf/task-clock, cgroup/memory, energy/powercap
	Support Support `json:"support"`
	Reason  string  `json:"reason,omitempty"` // why not, or by what means
	// Group of a perf event: events of one group count together, and share its ratio of
	// running to enabled time.
	Group string `json:"group,omitempty"`
	// Silent means that it does not answer at this time: it is supported, or was not known
	// when it was asked; Reason says since when.
	Silent bool `json:"silent,omitempty"`
}

// Node says what machine this is and what it can measure.
type Node struct {
	Hostname     string   `json:"hostname"`
	CPUModel     string   `json:"cpu_model"`
	Cores        int      `json:"cores"`
	MemoryBytes  int64    `json:"memory_bytes"`
	MachineKind  string   `json:"machine_kind"` // equal on machines whose profiles may be compared
	Schema       string   `json:"schema"`       // counter columns of its samples, name and version
	Sources      []Source `json:"sources"`
	EnergySource string   `json:"energy_source"` // perf-power, rapl, bmc, hwmon, gpu, modelled, replayed, or empty
	IntervalSecs float64  `json:"interval_seconds"`
	// Exporter is how the exporter runs; nil = an older one, which does not say.
	Exporter *Exporter `json:"exporter,omitempty"`
}

// Exporter says how an exporter runs, as far as that affects what it can measure and keep.
type Exporter struct {
	UID          uint32   `json:"uid"`
	Capabilities []string `json:"capabilities"` // of those that it may need, such as cap_perfmon
	Version      string   `json:"version,omitempty"`
	Program      string   `json:"program,omitempty"`      // path
	Leaf         bool     `json:"perf_leaf,omitempty"`    // --perf.leaf
	State        string   `json:"state_file,omitempty"`   // --state.file
	StateErr     string   `json:"state_error,omitempty"`  // why it was not written the last time; empty = it was, or it is young
	Blind        string   `json:"blind,omitempty"`        // why it takes no reports from jobs
	Jobs         int      `json:"jobs_running,omitempty"` // of all users
}

// Job is one job that the exporter sees on the node.
type Job struct {
	Manager string    `json:"manager"` // local, slurm, nomad
	ID      string    `json:"id"`      // of Slurm the job's number, of Nomad <allocation>.<task>
	Attempt int       `json:"attempt"` // of Slurm one more than its restart count, where that can be known
	UID     uint32    `json:"uid"`
	Cgroup  string    `json:"cgroup,omitempty"`
	Started time.Time `json:"started"` // when the exporter first saw it
	Ended   bool      `json:"ended"`
	// First is when an exporter first saw it: Started, unless an earlier exporter did.
	First time.Time `json:"first,omitzero"`
	// Budget is what the job may use; nil = it has none.
	Budget *Budget `json:"budget,omitempty"`
	// Saves is how often the attempt has said that it saved a checkpoint.
	Saves int `json:"saves,omitempty"`
	// Saved is when it last did, by the node's clock; zero = never, or an older exporter.
	Saved time.Time `json:"saved,omitzero"`
	// Heard is since when a listener reads the lines that report its epochs; zero = unknown.
	Heard time.Time `json:"heard,omitzero"`
	// Absent are sources that the node has and that cannot measure this job, with
	// the reason: a job without a cgroup in perf's hierarchy has no perf.
	Absent []Source `json:"absent,omitempty"`
}

// Saves is what an attempt has reported about the checkpoints that it saved.
type Saves struct {
	Count int
	Last  time.Time // when the latest was saved, by the clock of its node; zero = unknown
	Now   time.Time // when this was asked, by the same clock; zero = unknown
}

// Schemas of samples; SchemaWith names further ones. Those of different schemas are
// never compared.
const (
	SchemaSoftware   = "sw/1"   // accounting and perf's software events
	SchemaAccounting = "acct/1" // accounting alone: faults are those that /proc counts
)

// Columns of a sample. Counters only grow within an attempt; gauges are marked.
// A column that is not in Sample.Values is missing, which is not zero. Further columns
// are those of PerfEvent, PerfEnabled and PerfRunning.
const (
	ColUserSeconds    = "cpu_user_seconds"
	ColSystemSeconds  = "cpu_system_seconds"
	ColCPUSeconds     = "cpu_seconds"        // user + system
	ColTaskClock      = "task_clock_seconds" // perf
	ColContextSwitch  = "context_switches"   // perf
	ColMigrations     = "cpu_migrations"     // perf
	ColMinorFaults    = "minor_faults"       // perf
	ColMajorFaults    = "major_faults"       // perf
	ColVoluntary      = "voluntary_switches" // of the threads that live
	ColInvoluntary    = "involuntary_switches"
	ColReadChars      = "read_chars" // of the processes that live
	ColWriteChars     = "write_chars"
	ColReadBytes      = "read_bytes" // that reached the storage
	ColWriteBytes     = "write_bytes"
	ColRSS            = "memory_rss_bytes"  // gauge
	ColCache          = "memory_file_bytes" // gauge
	ColPeak           = "memory_peak_bytes" // gauge, only grows
	ColThreads        = "threads"           // gauge
	ColProcesses      = "processes"         // gauge
	ColFatalSignals   = "fatal_signals"     // gauge: the sum of 2^(n-1) over the signals n that end the job
	ColCPUPressure    = "cpu_pressure_seconds"
	ColMemoryPressure = "memory_pressure_seconds"
	ColIOPressure     = "io_pressure_seconds"
	ColJoules         = "energy_joules"        // this job's share of the node's, its GPUs included
	ColNodeBusy       = "node_busy_seconds"    // CPU seconds of the whole node, all cores
	ColNodeSteal      = "node_steal_seconds"   // CPU seconds the hypervisor took
	ColPerfRunning    = "perf_running_seconds" // of all groups; less than perf_enabled_seconds: multiplexed
	ColPerfEnabled    = "perf_enabled_seconds"
	ColAllocatedCores = "allocated_cores"   // gauge: size of the job's cpuset or affinity, or its part of CPUs that it shares
	ColGPUJoules      = "gpu_energy_joules" // the part of energy_joules that its GPUs took
	ColGPUBusy        = "gpu_busy_seconds"  // of all its GPUs, by share
	ColGPUMemory      = "gpu_memory_bytes"  // gauge: of its processes
	ColGPUs           = "gpu_contexts"      // gauge: on how many GPUs each of its processes is, added up
)

// Gauge reports whether a column may go down. All others are counters.
func Gauge(column string) bool {
	return slices.Contains([]string{ColRSS, ColCache, ColPeak, ColThreads, ColProcesses, ColFatalSignals, ColAllocatedCores, ColGPUMemory, ColGPUs}, column)
}

// Sample is one reading of a job's counters, cumulative since its attempt began.
type Sample struct {
	Seq    uint64             `json:"seq"`
	Time   time.Time          `json:"time"`
	Values map[string]float64 `json:"values"`
	Mark   *Report            `json:"mark,omitempty"`  // set on the snapshot taken at a progress mark
	Ended  bool               `json:"ended,omitempty"` // the last sample: the job is gone
}

// Report is one progress mark: this epoch ended, or with Saved or Begins, which have no epoch:
// the job saved a checkpoint, or its listener begins to read its lines.
type Report struct {
	Saved   bool     `json:"saved,omitempty"`
	Begins  bool     `json:"begins,omitempty"` // from now on the job's lines are read
	Epoch   int      `json:"epoch"`            // as the job counts, from 1
	Total   int      `json:"total,omitempty"`
	Loss    *float64 `json:"loss,omitempty"`
	Quality *float64 `json:"quality,omitempty"`
	// Diverged: the loss or the quality was said to be NaN or infinite, and is left out here.
	Diverged bool      `json:"diverged,omitempty"`
	Time     time.Time `json:"time"` // when the line was read
	// Nth counts, from 1, the lines of the whole output of the same kind, so
	// that on a job's behalf a line is not counted twice by a reader that starts again; 0 = not
	// counted.
	Nth int `json:"nth,omitempty"`
}

// Window is what the ring of one attempt of a job holds, oldest first.
type Window struct {
	Job     Job    `json:"job"`
	Schema  string `json:"schema"`
	Source  string `json:"energy_source"`
	Dropped uint64 `json:"dropped"` // samples that the ring had to forget
	// Now is when this was answered, by the node's clock; zero = an older exporter.
	Now     time.Time `json:"now,omitzero"`
	Samples []Sample  `json:"samples"` // last, since the server goes on with more of them
}
