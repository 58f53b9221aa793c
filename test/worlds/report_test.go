package worlds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
)

// group is what a run is counted with.
type group string

const (
	save  group = "save"  // a first run that the net oracle makes cheaper by 15 % or more
	some  group = "some"  // by 3 to 15 %
	none  group = "none"  // by less
	again group = "again" // a second run of a kind
	tries group = "batch" // a run of a kind with a batch size
)

func groups() []group { return []group{save, some, none, again, tries} }

// row is the outcome of a run. Ratios are costs in its objective, or what they say, over
// those of the same run that was never moved.
type row struct {
	Seed      uint64           `json:"seed"`
	Run       int              `json:"run"` // of its kind, from 1
	Group     group            `json:"group"`
	Objective tuning.Objective `json:"objective"`
	Limit     float64          `json:"max_slowdown"` // 0 = none
	Hours     float64          `json:"hours"`        // never moved
	Ratio     float64          `json:"ratio"`
	Oracle    float64          `json:"oracle_ratio"` // of the net oracle; of a run that is not its kind's first, of the best start
	Seconds   float64          `json:"seconds_ratio"`
	Quality   float64          `json:"quality_ratio"`
	Own       string           `json:"own"`
	Began     string           `json:"began"`
	Ended     string           `json:"ended"`
	Best      string           `json:"best"`    // from its start
	Near      bool             `json:"near"`    // it ended under a permitted setting within 5 % of the best
	Tuned     bool             `json:"tuned"`   // it began under another setting than its owner's that costs less
	Changed   bool             `json:"changed"` // it did not run all the way as its owner has it
	Trying    bool             `json:"trying"`  // it was to try a setting from its start
	Control   bool             `json:"control"` // it was drawn into the control group and counts in no figure
	Resized   bool             `json:"resized"` // it asked for another number of cores than the first
	Broken    bool             `json:"broken"`  // it ended with less quality than its guard keeps
	SafeBatch float64          `json:"safe_batch_ratio,omitempty"`
	Uses      bool             `json:"uses_safe_batch,omitempty"` // decided, not tried
	Why       []string         `json:"why"`
	Took      float64          `json:"took"` // seconds to play its world
}

// near is how much dearer than the best setting one may be that counts as good.
const near = 1.05

func (w world) row(n int, x truth, p played) row {
	j := w.runs[n]
	of := func(c cost) float64 { return c.of(j.objective) / x.own.of(j.objective) }
	attempts := p.job.Attempts
	began, ended := j.under(attempts[0].Change), j.under(attempts[len(attempts)-1].Change)
	r := row{
		Seed: w.seed, Run: n + 1, Objective: j.objective, Limit: j.slowdown, Hours: x.own.Seconds / 3600,
		Ratio: of(p.cost), Oracle: of(x.oracle), Seconds: p.cost.Seconds / x.own.Seconds, Quality: p.cost.quality / x.own.quality,
		Own: j.own.String(), Began: began.String(), Ended: ended.String(), Best: x.start.String(),
		Tuned: began != j.own && of(x.whole[began]) < 1, Changed: len(attempts) > 1 || began != j.own,
		Resized: j.own != w.runs[0].own,
		Broken:  p.cost.quality < j.keeps*x.own.quality*(1-1e-9),
	}
	if c, known := x.whole[ended]; known {
		r.Near = x.permits(j, ended) && of(c) <= near*of(x.whole[x.start])
	}
	if r.Group = w.group(n, x); n > 0 || w.kind == batch {
		r.Oracle = of(x.whole[x.start])
	}
	if w.kind == batch {
		r.SafeBatch = 1
		for s, c := range x.whole {
			if s.cores == j.own.cores && x.permits(j, s) {
				r.SafeBatch = min(r.SafeBatch, of(c))
			}
		}
		r.Uses = began.batch != j.own.batch && x.permits(j, began) && !r.Trying
	}
	for _, l := range p.story {
		d := l.Decision
		if d == nil {
			continue
		}
		r.Control = r.Control || d.Reason == tuning.ReasonControlGroup
		r.Trying = r.Trying || d.Reason == tuning.ReasonTryingReturn && began != j.own
		ended, _ := slices.BinarySearch(p.cost.marks, l.At.Sub(p.job.Started))
		r.Why = append(r.Why, strings.TrimSpace(fmt.Sprintf("after %d %s %s %s", ended, d.Action, d.Reason, d.Settings)))
	}
	return r
}

func (w world) group(n int, x truth) group {
	saving := 1 - x.oracle.of(w.runs[n].objective)/x.own.of(w.runs[n].objective)
	switch {
	case w.kind == batch:
		return tries
	case n > 0:
		return again
	case saving >= 0.15:
		return save
	case saving >= 0.03:
		return some
	}
	return none
}

// rows are some of them, and what they come to.
type rows []row

func (r rows) that(is func(row) bool) rows {
	return slices.DeleteFunc(slices.Clone(r), func(x row) bool { return !is(x) })
}

func (r rows) in(g group) rows { return r.that(func(x row) bool { return x.Group == g && !x.Control }) }

// share is NaN where there are none.
func (r rows) share(is func(row) bool) float64 { return float64(len(r.that(is))) / float64(len(r)) }

func (r rows) mean(of func(row) float64) float64 {
	sum := 0.0
	for _, x := range r {
		sum += of(x)
	}
	return sum / float64(len(r))
}

// kept is the share of the oracle's log saving that was made.
func (r rows) kept() float64 {
	return r.mean(func(x row) float64 { return math.Log(x.Ratio) }) / r.mean(func(x row) float64 { return math.Log(x.Oracle) })
}

func (r rows) worst() row {
	return slices.MaxFunc(r, func(a, b row) int { return cmp.Compare(a.Ratio, b.Ratio) })
}

func improved(x row) bool { return x.Ratio <= 0.99 }
func isNear(x row) bool   { return x.Near }
func changed(x row) bool  { return x.Changed }
func loss(x row) float64  { return max(0, x.Ratio-1) }

// aim is a figure that is wanted.
type aim struct {
	Name  string   `json:"name"`
	Value *float64 `json:"value"` // null: nothing to take it of
	Aim   float64  `json:"aim"`
	Least bool     `json:"least"` // the aim is the least; otherwise the most
	Of    int      `json:"of"`
	Met   bool     `json:"met"`
}

func (r rows) aims() []aim {
	var out []aim
	add := func(name string, of int, value float64, least bool, want float64) {
		a := aim{Name: name, Of: of, Least: least, Aim: want}
		if !math.IsNaN(value) {
			a.Value, a.Met = &value, least && value >= want || !least && value <= want
		}
		out = append(out, a)
	}
	could, cannot := r.in(save), r.in(none)
	add("could save 15 %: share that ends within 5 % of the best setting", len(could), could.share(isNear), true, 0.90)
	add("could save 15 %: share of the net oracle's log saving that is kept", len(could), could.kept(), true, 0.80)
	add("could save under 3 %: share that is disturbed", len(cannot), cannot.share(changed), false, 0.05)
	add("could save under 3 %: mean loss", len(cannot), cannot.mean(loss), false, 0.003)
	counted := r.that(func(x row) bool { return !x.Control })
	add("all jobs: the dearest, tries included", len(counted), counted.worst().Ratio, false, 1.05)
	var worlds, broken, safe, used rows // one row for each world
	for _, x := range r.in(tries) {
		ofWorld := r.that(func(y row) bool { return y.Seed == x.Seed && !y.Control })
		if x.Run > 1 {
			continue
		}
		worlds = append(worlds, x)
		if len(ofWorld.that(func(y row) bool { return y.Broken && !y.Trying })) > 0 {
			broken = append(broken, x)
		}
		if x.SafeBatch <= 0.85 {
			safe = append(safe, x)
			if len(ofWorld.that(func(y row) bool { return y.Uses })) > 0 {
				used = append(used, x)
			}
		}
	}
	add("batch worlds: share in which a run that tried nothing broke its guard", len(worlds), float64(len(broken))/float64(len(worlds)), false, 0.02)
	add("batch worlds where a safe batch saves 15 %: share that uses one within 12 runs", len(safe), float64(len(used))/float64(len(safe)), true, 0.60)
	for _, resized := range []bool{false, true} {
		seconds := r.in(again).that(func(x row) bool { return x.Resized == resized && x.Oracle <= 0.85 })
		name := map[bool]string{false: "as many cores", true: "another number of cores"}[resized]
		add("second jobs that could save 15 %, "+name+": share that starts tuned", len(seconds), seconds.share(func(x row) bool { return x.Tuned }), true, 0.95)
	}
	return out
}

// String is the table, the aims and the worst.
func (r rows) String() string {
	var out strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&out, format, args...) }
	p("\n%-34s %5s %9s %9s %7s %10s %10s %7s\n", "", "jobs", "improved", "ends near", "kept", "disturbed", "mean loss", "worst")
	line := func(name string, x rows) {
		if len(x) == 0 {
			p("%-34s %5d\n", name, 0)
			return
		}
		p("%-34s %5d %8.0f%% %8.0f%% %7.2f %9.0f%% %9.2f%% %7.3f\n", name, len(x),
			100*x.share(improved), 100*x.share(isNear), x.kept(), 100*x.share(changed), 100*x.mean(loss), x.worst().Ratio)
	}
	line("could save 15 % or more", r.in(save))
	line("could save 3 to 15 %", r.in(some))
	line("could save under 3 %", r.in(none))
	line("second jobs, could save 15 %", r.in(again).that(func(x row) bool { return x.Oracle <= 0.85 }))
	line("second jobs, others", r.in(again).that(func(x row) bool { return x.Oracle > 0.85 }))
	line("batch, runs that try", r.in(tries).that(func(x row) bool { return x.Trying }))
	line("batch, other runs", r.in(tries).that(func(x row) bool { return !x.Trying }))
	p("control group, in no figure: %d. Dearer than 1.05: %d tries and %d others. Slower than the owner's limit by over 5 %%: %d. Guards broken by tries: %d.\n",
		len(r.that(func(x row) bool { return x.Control })),
		len(r.that(func(x row) bool { return x.Ratio > 1.05 && x.Trying })), len(r.that(func(x row) bool { return x.Ratio > 1.05 && !x.Trying })),
		len(r.that(func(x row) bool { return x.Limit > 0 && x.Seconds > 1.05*x.Limit })), len(r.that(func(x row) bool { return x.Broken && x.Trying })))
	p("\naims\n")
	for _, a := range r.aims() {
		sign, verdict, value := "<=", "missed", math.NaN()
		if a.Least {
			sign = ">="
		}
		if a.Value != nil {
			value = *a.Value
		}
		switch {
		case a.Value == nil:
			verdict = "unknown"
		case a.Met:
			verdict = "met"
		}
		p("  %-82s %7.3f  want %s %5.3f  %-7s of %d\n", a.Name, value, sign, a.Aim, verdict, a.Of)
	}
	p("\nthe ten worst, by what the oracle would have saved\n")
	regret := func(x row) float64 { return math.Log(x.Ratio / x.Oracle) }
	r = slices.Clone(r)
	slices.SortStableFunc(r, func(a, b row) int { return cmp.Compare(regret(b), regret(a)) })
	seen := map[uint64]bool{}
	for _, x := range r {
		if seen[x.Seed] || x.Control || len(seen) == 10 {
			continue
		}
		seen[x.Seed] = true
		p("  %s\n    %s\n", x, strings.Join(x.Why, "; "))
	}
	return out.String()
}

func (x row) String() string {
	return fmt.Sprintf("world %d run %d (%s): %.3f where %.3f was possible, %s, %.1f h, limit %g, own %s, began %s, ended %s, best %s",
		x.Seed, x.Run, x.Group, x.Ratio, x.Oracle, x.Objective, x.Hours, x.Limit, x.Own, x.Began, x.Ended, x.Best)
}

// write keeps everything as JSON.
func (r rows) write(file string, took time.Duration) error {
	raw, err := json.MarshalIndent(struct {
		Seconds float64 `json:"seconds"`
		Aims    []aim   `json:"aims"`
		Runs    rows    `json:"runs"`
	}{took.Seconds(), r.aims(), r}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600)
}
