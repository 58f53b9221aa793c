package metrics

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"pitchpipe/exporter/api"
)

// family is written in the exposition format 0.0.4 into a buffer that is used again.
// prometheus.NewConstMetric and expfmt take some 10 µs for each series, which are 130 ms on a
// node with 400 jobs; this takes less than 1 µs.
type family struct {
	Metric
	head, body []byte
}

// column says where a column of a sample is shown.
type column struct {
	family *family // nil = it is in no family
	event  string  // of perf, which some machines alone name
	group  string  // of perf events, whose time this is
	other  int     // column of the time for which that group counted, -1 = unknown
}

// learn finds out where columns are shown.
func (s *pages) learn(columns []string) {
	if len(columns) == len(s.columns) {
		return
	}
	s.columns = make([]column, len(columns))
	for i, c := range columns {
		if at := slices.IndexFunc(s.families, func(f *family) bool { return f.Column == c }); at >= 0 {
			s.columns[i].family = s.families[at]
		} else if name, ok := api.EventOf(c); ok {
			s.columns[i].event = name
		} else if name, ok := api.GroupOf(c); ok {
			s.columns[i].group, s.columns[i].other = name, slices.Index(columns, api.PerfRunning(name))
		}
	}
}

// adder returns a function that writes one series of a family. job are the labels of a job, as
// jobLabels wrote them, or nil; values are those of the family's other labels, in their order.
func (s *pages) adder(job []byte) func(name string, v float64, values ...string) {
	return func(name string, v float64, values ...string) { s.names[name].add(v, job, values...) }
}

func (f *family) add(v float64, job []byte, values ...string) {
	f.body = append(f.body, f.Name...)
	labels := f.Labels
	if job != nil {
		labels = labels[len(jobLabelNames()):]
		f.body = append(f.body, job...)
	}
	for i, value := range values {
		mark := byte(',')
		if i == 0 && job == nil {
			mark = '{'
		}
		f.body = label(append(f.body, mark), labels[i], value)
	}
	if job != nil || len(values) > 0 {
		f.body = append(f.body, '}')
	}
	f.body = append(strconv.AppendFloat(append(f.body, ' '), v, 'g', -1, 64), '\n')
}

// jobLabels writes the labels that all series of a job begin with.
func jobLabels(j api.Job) []byte {
	b := label([]byte{'{'}, "manager", j.Manager)
	b = label(append(b, ','), "job_id", j.ID)
	return label(append(b, ','), "attempt", strconv.Itoa(j.Attempt))
}

// escapes are the characters that a label's value cannot hold.
const escapes = "\\\"\n"

func label(b []byte, name, value string) []byte {
	if strings.ContainsAny(value, escapes) || !utf8.ValidString(value) {
		value = strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(value, "�"))
	}
	return append(append(append(append(b, name...), '=', '"'), value...), '"')
}

// take returns what was added, and starts again. Families without a series are left out.
func (s *pages) take() []byte {
	size := len(s.tail)
	for _, f := range s.families {
		size += len(f.head) + len(f.body)
	}
	out := make([]byte, 0, size)
	for _, f := range s.families {
		if len(f.body) > 0 {
			out = append(append(out, f.head...), f.body...)
			f.body = f.body[:0]
		}
	}
	return append(out, s.tail...)
}
