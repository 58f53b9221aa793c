package api

import (
	"fmt"
	"time"

	"pitchpipe/controller/searcher/preview"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
)

// Paths of the controller's socket.
const (
	PathJobs      = "/v1/jobs"            // GET []Job; POST Submission → Job
	PathJob       = "/v1/jobs/{id...}"    // GET Job
	PathExplain   = "/v1/explain/{id...}" // GET Story; ?replay=true
	PathLogs      = "/v1/logs/{id...}"    // GET text; ?offset=N
	PathOff       = "/v1/off/{id...}"     // POST → 204
	PathStop      = "/v1/stop/{id...}"    // POST → 204
	PathValidate  = "/v1/validate"        // POST Draft → Verdict, also where the file has errors
	PathHistory   = "/v1/history"         // GET []Event, newest last
	PathKnowledge = "/v1/knowledge"       // GET Knowledge
	// PathObservations: GET, one JSON observation a line.
	PathObservations = "/v1/observations"
	PathReport       = "/v1/report"     // GET report.Table; ?since=30d&by=user
	PathHeadStarts   = "/v1/headstarts" // POST, a job that is about to be submitted, as its scheduler takes it → HeadStart
	PathAdvice       = "/v1/advice"     // GET []advise.Item: what the scheduler is advised about jobs that no one tunes
	PathPauses       = "/v1/pauses"     // GET []Pause; POST Pause → 204; DELETE ?scope=&name= → 204

	PathSearches     = "/v1/searches"                 // GET []trials.State; POST Submission → trials.State
	PathSearch       = "/v1/searches/{search}"        // GET trials.State
	PathSearchStop   = "/v1/searches/{search}/stop"   // POST → 204
	PathSearchResume = "/v1/searches/{search}/resume" // POST ?trials=N → 204

	PathMetrics = "/metrics" // GET, Prometheus text
)

// Submission is a job file to run.
type Submission struct {
	Request   string            `json:"request"` // makes a repeat harmless; empty = a new one
	Filename  string            `json:"filename"`
	Source    []byte            `json:"source"`
	Variables map[string]string `json:"variables,omitempty"`
	Dir       string            `json:"dir"`
	Env       map[string]string `json:"env,omitempty"`
	Off       bool              `json:"off,omitempty"`       // run it untuned
	Namespace string            `json:"namespace,omitempty"` // of the trials of a search on Nomad whose file names none
}

// HeadStart is what a user who asked before submits a job with, instead of its own
// settings; the zero HeadStart: as it is.
type HeadStart struct {
	Intent   string          `json:"intent,omitempty"` // the scheduler gets it with the change
	Change   driver.Change   `json:"change,omitzero"`
	Settings tuning.Settings `json:"settings,omitempty"`
	Reason   tuning.Reason   `json:"reason,omitempty"`
	Sentence string          `json:"sentence,omitempty"` // the reason in words
}

// Draft is a job file to judge; nothing is run.
type Draft struct {
	Filename  string            `json:"filename"`
	Source    []byte            `json:"source"`
	Variables map[string]string `json:"variables,omitempty"`

	// What the environment of sbatch says, which counts before the file.
	Partition string `json:"partition,omitempty"`
	Account   string `json:"account,omitempty"`
	QOS       string `json:"qos,omitempty"`
}

// Verdict is what a job file means to the tuner.
type Verdict struct {
	File   string         `json:"file"`
	Valid  bool           `json:"valid"`
	Policy *tuning.Policy `json:"policy,omitempty"` // defaults included
	Text   string         `json:"text,omitempty"`   // the policy as a stanza
	Errors jobfile.Errors `json:"errors,omitempty"`
	Note   string         `json:"note,omitempty"`
	// Warnings are comments that look like lines of the stanza, and options that are left to Slurm.
	Warnings jobfile.Errors `json:"warnings,omitempty"`
	// Prospects say when each knob can act, per scheduler.
	Prospects []tuning.Prospects `json:"prospects,omitempty"`
	// Epoch is what an epoch of the jobs of its kind took, where it has a search; nil: none has run.
	Epoch *preview.Estimate `json:"epoch,omitempty"`
}

// Job is one job's status.
type Job struct {
	trials.Lineage // the search that it belongs to

	ID       string        `json:"id"`
	Name     string        `json:"name"`
	Owner    string        `json:"owner"`
	State    string        `json:"state"` // at its scheduler
	Phase    string        `json:"phase"` // in the tuner
	Reason   tuning.Reason `json:"reason,omitempty"`
	Sentence string        `json:"sentence,omitempty"` // the reason in words
	Detail   string        `json:"detail,omitempty"`
	Class    *tuning.Class `json:"class,omitempty"`
	Epoch    int           `json:"epoch"`
	Total    int           `json:"total"`          // 0 = unknown
	Seconds  float64       `json:"seconds"`        // that it ran
	Waited   float64       `json:"waited_seconds"` // in the queue
	Joules   *float64      `json:"joules"`         // null: not measured
	Source   string        `json:"energy_source,omitempty"`

	CoreHours  *float64 `json:"core_hours"` // that its attempts held; null: not known
	Cost       *float64 `json:"cost"`       // null: not known
	CostUnit   string   `json:"cost_unit,omitempty"`
	FreeEnergy bool     `json:"cost_without_energy,omitempty"` // which has a price, and was not measured throughout

	Quality  *float64        `json:"quality,omitempty"`
	Attempt  int             `json:"attempt"`
	Restarts int             `json:"restarts"`
	Probes   int             `json:"probes"`
	ExitCode int             `json:"exit_code"`
	Ended    bool            `json:"ended"` // at its scheduler, and the tuner is through with it
	Policy   *tuning.Policy  `json:"policy,omitempty"`
	Own      tuning.Settings `json:"own,omitempty"`
	Current  tuning.Settings `json:"current,omitempty"`
	Advice   tuning.Settings `json:"advice,omitempty"`
	Recalled bool            `json:"recalled,omitempty"` // changed before its start
	// RightSized: only its memory was changed before its start, since jobs of its kind
	// needed less than its owner asked for.
	RightSized bool            `json:"right_sized,omitempty"`
	Trials     []tuning.Trial  `json:"trials,omitempty"`
	Outcome    *tuning.Outcome `json:"outcome,omitempty"`
	Submitted  time.Time       `json:"submitted"`
	Started    time.Time       `json:"started,omitzero"`
	EndedAt    time.Time       `json:"ended_at,omitzero"`
}

// Line is one sentence of a job's story.
type Line struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
	Why  []string  `json:"why,omitempty"` // the numbers behind it
	// Decision is the decision that the line is about, in full; nil: it is about none.
	Decision *tuning.Decision `json:"decision,omitempty"`
}

// Usage is how much of a resource a job used, of what it asked for.
type Usage struct {
	Resource  string  `json:"resource"` // cpu, memory, gpu, power
	Used      float64 `json:"used"`
	Requested float64 `json:"requested,omitempty"` // 0: it asked for none, or for no amount
	Unit      string  `json:"unit"`                // cores, bytes, gpus, watts
	Source    string  `json:"source,omitempty"`    // of watts
}

// Asked prints the amount that was asked for.
func (u Usage) Asked() string {
	if u.Requested == 0 {
		return "-"
	}
	return u.Text(u.Requested)
}

// Text prints an amount of the resource for reading.
func (u Usage) Text(v float64) string {
	switch {
	case u.Unit == "bytes":
		return tuning.Bytes(v).Human()
	case u.Unit == "watts" && u.Source != "":
		return fmt.Sprintf("%.1f W (%s)", v, u.Source)
	}
	return fmt.Sprintf("%.2f %s", v, u.Unit)
}

// Story is what happened to a job, in order.
type Story struct {
	trials.Lineage // the search that it belongs to

	Job     string  `json:"job"`
	Verdict string  `json:"verdict"` // where it is, and what tuning did for it
	Effect  string  `json:"effect"`  // on time, cost and joules
	Next    string  `json:"next"`    // what its owner can do
	Usage   []Usage `json:"usage,omitempty"`

	Lines []Line `json:"lines"`
	Spent string `json:"spent,omitempty"` // what its attempts held and were charged so far, in words

	// Replays are its decisions made again, oldest first, where the request asks for it.
	// Dropped counts the earlier ones, whose state is not kept.
	Replays []Replay `json:"replays,omitempty"`
	Dropped int      `json:"dropped,omitempty"`
}

// Replay is a decision of a job that was made again by what is kept of it.
type Replay struct {
	At       time.Time        `json:"at"`
	Action   tuning.Action    `json:"action"`
	Reason   tuning.Reason    `json:"reason"`
	Settings tuning.Settings  `json:"settings,omitempty"`
	Same     bool             `json:"same"`            // the very same, evidence included
	Alike    bool             `json:"alike"`           // the same is done, perhaps by other evidence
	Text     string           `json:"text"`            // what came of it, in words
	Again    *tuning.Decision `json:"again,omitempty"` // what is decided now; nil: it could not be made again
	State    *tuning.State    `json:"state,omitempty"` // what it was made of
}

// Event is one line of the history of all jobs.
type Event struct {
	trials.Lineage // the search that the job belongs to, or that the event is about

	At     time.Time     `json:"at"`
	Job    string        `json:"job"` // empty: none
	Name   string        `json:"name"`
	Phase  string        `json:"phase,omitempty"`
	Reason tuning.Reason `json:"reason,omitempty"`
	Text   string        `json:"text"`
}

// KnownEffects are what settings do for one objective.
type KnownEffects struct {
	Objective tuning.Objective `json:"objective"`
	Sources   []string         `json:"energy_sources,omitempty"` // of the joules in it
	Effects   []tuning.Effect  `json:"effects"`                  // the best first
}

// KnownKind is what was learned about jobs of one kind.
type KnownKind struct {
	Kind      string            `json:"kind"`
	Runs      int               `json:"runs"`
	Newest    time.Time         `json:"newest,omitzero"`
	Class     string            `json:"class,omitempty"` // of its newest run
	Peak      tuning.Bytes      `json:"peak_rss_bytes,omitempty"`
	Effects   []KnownEffects    `json:"effects,omitempty"` // against its owner's settings; one per objective that has data
	Regressed []tuning.Settings `json:"regressed,omitempty"`
}

// KnownClass is what was learned about jobs of one class: system knobs only.
type KnownClass struct {
	ID      string         `json:"id"`
	Runs    int            `json:"runs"`
	Kinds   []string       `json:"kinds"`
	Effects []KnownEffects `json:"effects,omitempty"`
}

// KnownModel is the model that tells classes apart.
type KnownModel struct {
	Name       string         `json:"name"`
	Version    int            `json:"version"`    // of its form
	Fits       int            `json:"fits"`       // it is the last of so many
	Confidence float64        `json:"confidence"` // share of a class's runs within its radius; farther away is unknown
	Strata     []KnownStratum `json:"strata"`
}

// KnownStratum are the classes of profiles that can be compared with each other.
type KnownStratum struct {
	Schema     string  `json:"schema"`
	Machine    string  `json:"machine"`
	Settings   string  `json:"settings"` // cores and threads of the profiles
	K          int     `json:"k"`
	Runs       int     `json:"runs"`
	Silhouette float64 `json:"silhouette"` // how well they are apart, up to 1; 0 with fewer than two classes
}

// Knowledge is what was learned.
type Knowledge struct {
	Schema       int          `json:"schema"` // of the store
	Observations int          `json:"observations"`
	Kinds        []KnownKind  `json:"kinds"`
	Classes      []KnownClass `json:"classes"`
	Model        *KnownModel  `json:"model"` // null: none has been fitted
}

// Pause says that the tuner does nothing in a scope.
type Pause struct {
	Scope string    `json:"scope"` // cluster, partition, user, job
	Name  string    `json:"name,omitempty"`
	By    string    `json:"by,omitempty"`
	Why   string    `json:"why,omitempty"`
	At    time.Time `json:"at,omitzero"`
}

// Problem is an error as the controller sends it.
type Problem struct {
	Error string `json:"error"`
	Kind  string `json:"kind,omitempty"` // invalid, not-found, denied, users-submit, users-stop, users-deregister, standby, unavailable
}
