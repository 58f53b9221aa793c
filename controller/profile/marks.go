package profile

import (
	"time"

	"pitchpipe/exporter/api"
)

// Fault says why a mark is not believed. Whoever runs inside a job can report
// progress, and what he reports steers decisions about the job.
type Fault string

// The faults.
const (
	FaultNumber    Fault = "epochs are counted from 1"
	FaultBackwards Fault = "a later epoch has ended before"
	FaultTotal     Fault = "the job has fewer epochs"
	FaultJump      Fault = "too many epochs since the last mark"
	FaultMany      Fault = "too many epochs in one attempt"
)

// maxGap bounds how many epochs may end between two marks: more is no progress
// but a slip or a forgery.
const maxGap = 64

// maxEpochs bounds the epochs of one attempt: what is reported costs memory and
// time of whoever reads it.
const maxEpochs = 10_000

// punctual is how long after its line was read a mark is taken at the latest. A
// mark that waited longer, since the exporter was away or busy, has a snapshot of
// some other moment.
const punctual = time.Second

// burst is how close two marks are when the job wrote its lines in one go, long
// after the first of these epochs ended.
const burst = 2 * time.Millisecond

// Refusal is a mark that is ignored.
type Refusal struct {
	Seq    uint64 // of the sample
	Report api.Report
	Fault  Fault
}

// mark is the end of an epoch.
type mark struct {
	epoch  int
	at     time.Time
	late   bool // delivered long after its line was read
	report api.Report
}

// Refused lists the marks of a window that Epochs does not believe.
func Refused(w api.Window, spec Spec) []Refusal {
	_, refused := marks(read(w), spec)
	return refused
}

// marks reads the ends of epochs, in time and in number both rising. Of several
// marks for one epoch the last wins: a job that reports within an epoch, or once
// for training and once for validation, has ended it with its last line. Marks
// of one burst leave only the last, and the time is shared out later.
func marks(r *readings, spec Spec) ([]mark, []Refusal) {
	var out []mark
	var refused []Refusal
	for i, s := range r.samples {
		if s.Mark == nil {
			continue
		}
		m := mark{epoch: s.Mark.Epoch, late: late(s), report: *s.Mark}
		m.at = markTime(r, i, out)
		if fault := judge(out, m, spec); fault != "" {
			refused = append(refused, Refusal{Seq: s.Seq, Report: *s.Mark, Fault: fault})
			continue
		}
		if n := len(out); n > 0 && (out[n-1].epoch == m.epoch || m.at.Sub(out[n-1].at) < burst) {
			out = out[:n-1]
		}
		out = append(out, m)
	}
	return out, refused
}

func judge(before []mark, m mark, spec Spec) Fault {
	if m.epoch < 1 {
		return FaultNumber
	}
	if spec.Total > 0 && m.epoch > spec.Total || m.report.Total > 0 && m.epoch > m.report.Total {
		return FaultTotal
	}
	if len(before) == 0 {
		return ""
	}
	switch gap := m.epoch - before[len(before)-1].epoch; {
	case gap < 0:
		return FaultBackwards
	case gap > maxGap:
		return FaultJump
	case m.epoch-before[0].epoch >= maxEpochs:
		return FaultMany
	}
	return ""
}

// markTime is the time of the snapshot, so that what is counted and how long it
// took belong together. A mark without a snapshot has the time its line was read,
// where that lies behind the sample before; a late one, where that lies behind the
// mark before.
func markTime(r *readings, i int, before []mark) time.Time {
	s := r.samples[i]
	told := s.Mark.Time
	if late(s) {
		from := r.begin()
		if n := len(before); n > 0 {
			from = before[n-1].at
		}
		if told.After(from) {
			return told
		}
		return s.Time
	}
	if len(s.Values) > 0 || told.IsZero() || told.After(s.Time) || i > 0 && told.Before(r.samples[i-1].Time) {
		return s.Time
	}
	return told
}

func late(s api.Sample) bool {
	return !s.Mark.Time.IsZero() && s.Time.Sub(s.Mark.Time) > punctual
}
