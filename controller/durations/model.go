package durations

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"pitchpipe/controller/joblog"
)

const (
	first  = 50               // ended jobs before the first fit
	window = 100_000          // the latest ended jobs, on which the model is fitted, and the latest keys of a Latest
	growth = 0.25             // growth of the history until the next fit
	gone   = 90 * 24 * 3600.0 // seconds after which a job that was noted is forgotten
)

// Model forecasts durations. It is not safe for use by several goroutines at once.
type Model struct {
	past    [2]Latest[kin, past] // those without a name and those with one
	rows    []row
	logs    []float64
	seen    int
	fitted  int // jobs seen at the last fit
	shape   *additive
	blend   blend
	pending map[Features]noted
}

// noted is the forecast of jobs that were submitted in the same second and look the same.
type noted struct {
	said opinion
	jobs int
}

// New is a model that knows nothing.
func New() *Model {
	return &Model{shape: &additive{}, pending: map[Features]noted{}}
}

// Fit is a model of a history: each job is noted when it was submitted and learnt when it had ended.
func Fit(jobs []Ended) *Model {
	m := New()
	replay(jobs, func(rest []Ended) { m.Note(rest[0].Features) }, m.Learn)
	m.refit()
	return m
}

func replay(jobs []Ended, submitted func(rest []Ended), ended func(Ended)) {
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j Ended) bool { return !j.possible() })
	Replay(jobs, func(j Ended) float64 { return j.Submit }, Ended.end, submitted, ended)
}

// Replay goes through the submissions and the ends of jobs in the order of time; of the same time submissions come
// first. A submission comes with those after it.
func Replay[T any](jobs []T, submit, end func(T) float64, submitted func(rest []T), ended func(T)) {
	submits, ends := slices.Clone(jobs), slices.Clone(jobs)
	slices.SortStableFunc(submits, func(a, b T) int { return cmp.Compare(submit(a), submit(b)) })
	slices.SortStableFunc(ends, func(a, b T) int { return cmp.Compare(end(a), end(b)) })
	for i := range submits {
		for ; len(ends) > 0 && end(ends[0]) < submit(submits[i]); ends = ends[1:] {
			ended(ends[0])
		}
		submitted(submits[i:])
	}
	for _, j := range ends {
		ended(j)
	}
}

// Note takes in that a job was submitted: the model's forecast of now is judged when it has ended.
func (m *Model) Note(f Features) {
	if m.seen > 0 {
		if was := m.pending[f]; was.jobs > 0 {
			m.pending[f] = noted{was.said, was.jobs + 1}
			return
		}
		m.pending[f] = noted{m.opinion(f), 1}
	}
}

// Submitted notes a job that is submitted now, and says what it will take; origin is that of Of.
func (m *Model) Submitted(j joblog.Job, origin float64) (Features, Forecast) {
	f := Of(j, origin)
	said := m.Predict(f)
	m.Note(f)
	return f, said
}

// Learn takes in a job that ended; one with an impossible time is left out. The model's forecast from when
// the job was noted, else that of now, shows how wrong the model is. Then the model moves towards the job; it
// is fitted again when the history has grown by a quarter. Jobs are best learnt in the order of their ends.
func (m *Model) Learn(e Ended) {
	if !e.possible() {
		return
	}
	job, value := m.row(e.Features), math.Log(max(1, e.Duration))
	was := m.pending[e.Features]
	if was.jobs == 0 {
		was.said = m.opinion(e.Features)
	}
	if m.pending[e.Features] = (noted{was.said, was.jobs - 1}); was.jobs <= 1 {
		delete(m.pending, e.Features)
	}
	m.blend.learn(was.said, value)
	m.shape.nudge(job, value)
	for _, k := range e.kin() {
		if k != (kin{}) {
			m.past[k.named()].Use(k).add(e.end(), value)
		}
	}
	m.rows, m.logs = append(m.rows, job), append(m.logs, value)
	if over := len(m.rows) - window; over > window/5 {
		m.rows, m.logs = slices.Clone(m.rows[over:]), slices.Clone(m.logs[over:])
	}
	if m.seen++; m.seen-m.fitted >= max(first, min(window/5, int(growth*float64(m.fitted)))) {
		m.refit()
		maps.DeleteFunc(m.pending, func(f Features, _ noted) bool { return f.Submit < e.end()-gone })
	}
}

func (m *Model) refit() {
	if m.seen > m.fitted {
		m.shape, m.fitted = fit(terms(), m.rows, m.logs), m.seen
	}
}

func (m *Model) opinion(f Features) opinion {
	return m.blend.opinion(f, m.shape.predict(m.row(f)), m.shape.base)
}

// Predict says what a job will take, from the jobs that were learnt.
func (m *Model) Predict(f Features) Forecast {
	if m.seen == 0 {
		return Forecast{Median: math.NaN(), Mean: math.NaN()}
	}
	said := m.opinion(f)
	out := Forecast{Samples: said.jobs[user], known: true, grid: m.blend.cautious(said)}
	for _, x := range said.grid {
		out.Mean += math.Exp(x) / levels
	}
	out.Median = out.Quantile(0.5)
	return out
}
