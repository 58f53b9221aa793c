package api

import (
	"time"

	"pitchpipe/controller/tuning"
)

// Paths of the controller's socket.
const (
	PathJobs      = "/v1/jobs"            // GET []Job; POST Submission → Job
	PathJob       = "/v1/jobs/{id...}"    // GET Job
	PathExplain   = "/v1/explain/{id...}" // GET Story
	PathLogs      = "/v1/logs/{id...}"    // GET text; ?offset=N
	PathOff       = "/v1/off/{id...}"     // POST → 204
	PathStop      = "/v1/stop/{id...}"    // POST → 204
	PathHistory   = "/v1/history"         // GET []Event, newest last
	PathKnowledge = "/v1/knowledge"       // GET Knowledge
	PathPauses    = "/v1/pauses"          // GET []Pause; POST Pause → 204; DELETE ?scope=&name= → 204
	PathMetrics   = "/metrics"            // GET, Prometheus text
)

// Submission is a job file to run.
type Submission struct {
	Request   string            `json:"request"` // makes a repeat harmless; empty = a new one
	Filename  string            `json:"filename"`
	Source    []byte            `json:"source"`
	Variables map[string]string `json:"variables,omitempty"`
	Dir       string            `json:"dir"`
	Env       map[string]string `json:"env,omitempty"`
	Off       bool              `json:"off,omitempty"` // run it untuned
}

// Job is one job's status.
type Job struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Owner     string          `json:"owner"`
	State     string          `json:"state"` // at its scheduler
	Phase     string          `json:"phase"` // in the tuner
	Reason    tuning.Reason   `json:"reason,omitempty"`
	Sentence  string          `json:"sentence,omitempty"` // the reason in words
	Detail    string          `json:"detail,omitempty"`
	Class     *tuning.Class   `json:"class,omitempty"`
	Epoch     int             `json:"epoch"`
	Total     int             `json:"total"` // 0 = unknown
	Seconds   float64         `json:"seconds"`
	Joules    *float64        `json:"joules"` // null: not measured
	Source    string          `json:"energy_source,omitempty"`
	Quality   *float64        `json:"quality,omitempty"`
	Attempt   int             `json:"attempt"`
	Restarts  int             `json:"restarts"`
	Probes    int             `json:"probes"`
	ExitCode  int             `json:"exit_code"`
	Ended     bool            `json:"ended"` // at its scheduler, and the tuner is through with it
	Policy    *tuning.Policy  `json:"policy,omitempty"`
	Own       tuning.Settings `json:"own,omitempty"`
	Current   tuning.Settings `json:"current,omitempty"`
	Advice    tuning.Settings `json:"advice,omitempty"`
	Recalled  bool            `json:"recalled,omitempty"` // changed before its start
	Trials    []tuning.Trial  `json:"trials,omitempty"`
	Outcome   *tuning.Outcome `json:"outcome,omitempty"`
	Submitted time.Time       `json:"submitted"`
	Started   time.Time       `json:"started,omitzero"`
	EndedAt   time.Time       `json:"ended_at,omitzero"`
}

// Line is one sentence of a job's story.
type Line struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
	Why  []string  `json:"why,omitempty"` // the numbers behind it
}

// Story is what happened to a job, in order.
type Story struct {
	Job   string `json:"job"`
	Lines []Line `json:"lines"`
}

// Event is one line of the history of all jobs.
type Event struct {
	At     time.Time     `json:"at"`
	Job    string        `json:"job"`
	Name   string        `json:"name"`
	Phase  string        `json:"phase,omitempty"`
	Reason tuning.Reason `json:"reason,omitempty"`
	Text   string        `json:"text"`
}

// KnownKind is what was learned about jobs of one kind.
type KnownKind struct {
	Kind    string          `json:"kind"`
	Runs    int             `json:"runs"`
	Class   string          `json:"class,omitempty"`
	Peak    tuning.Bytes    `json:"peak_rss_bytes,omitempty"`
	Effects []tuning.Effect `json:"effects,omitempty"`
}

// Knowledge is what was learned.
type Knowledge struct {
	Objective tuning.Objective `json:"objective"` // that the effects are given for
	Kinds     []KnownKind      `json:"kinds"`
	Classes   int              `json:"classes"`
	Model     string           `json:"model,omitempty"`
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
	Kind  string `json:"kind,omitempty"` // invalid, not-found, denied, unavailable
}
