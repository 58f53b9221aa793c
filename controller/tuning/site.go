package tuning

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Site is the administrator's policy as it applies to one job. A stanza can only narrow it.
type Site struct {
	MaxMode       Mode          `json:"max_mode"`
	Knobs         []string      `json:"knobs"`    // knobs that may be changed; nil = all
	Ceilings      Settings      `json:"ceilings"` // highest value per knob
	AboveRequest  bool          `json:"above_request"`
	MayRestart    bool          `json:"may_restart"`
	DryRun        bool          `json:"dry_run"`
	Control       float64       `json:"control"`        // share of eligible jobs that stays untuned, 0 to 1
	JobRestarts   int           `json:"job_restarts"`   // per job, 0 = the stanza's
	KindReturns   int           `json:"kind_returns"`   // per kind of job, 0 = the stanza's
	UserRestarts  int           `json:"user_restarts"`  // per user and hour, 0 = unbounded
	TotalRestarts int           `json:"total_restarts"` // in all per hour, 0 = unbounded
	MaxTuned      int           `json:"max_tuned"`      // jobs tuned at a time, 0 = unbounded
	Allocate      int           `json:"allocate"`       // cores that the elastic jobs of a partition share, 0 = each job is tuned alone
	ProbeShare    float64       `json:"probe_share"`    // largest share of a job's epochs spent on probes, of a kind's runs spent on trying, and of its live jobs under what is only predicted, two more for each run that showed it
	LimitReserve  time.Duration `json:"limit_reserve"`  // no restart this near to the time limit
	Margin        float64       `json:"margin"`         // the predicted saving must exceed the cost of the restart times this
	Tariff        Tariff        `json:"prices"`         // what jobs are charged

	Advice         Advice        `json:"advice"`          // what is done with advice to the scheduler
	AdviceQuantile float64       `json:"advice_quantile"` // of the forecast: a waiting job's time limit is lowered to it
	AdviceMargin   time.Duration `json:"advice_margin"`   // that the lowered limit leaves beyond it
	AdviceNice     int           `json:"advice_nice"`     // how much the priority of the largest jobs may be lowered, 0 = no job's

	EnforceModel bool `json:"enforce_model"` // modelled joules may support claims and budgets
	ShareClasses bool `json:"share_classes"` // class effects from other users' jobs count
	PauseAfter   int  `json:"pause_after"`   // regressions until the tuner pauses itself, 0 = never

	// Sources says where each key comes from: file:line, or FromDefault; nil = unknown.
	Sources map[string]string `json:"sources,omitempty"`
}

// DefaultSite is the policy of a site that wrote none.
func DefaultSite() Site {
	return Site{
		MaxMode:       Recommend,
		MayRestart:    true,
		Control:       0.10,
		UserRestarts:  60,
		TotalRestarts: 600,
		ProbeShare:    0.5,
		LimitReserve:  5 * time.Minute,
		Margin:        1.5,
		Tariff:        DefaultTariff(),
		ShareClasses:  true,
		PauseAfter:    5,

		Advice: AdviceRecommend, AdviceQuantile: 0.95, AdviceMargin: 5 * time.Minute,
	}
}

// Advice says what is done with advice to the scheduler about jobs that run as their owners have
// them.
type Advice string

// What is done.
const (
	AdviceOff       Advice = "off"
	AdviceRecommend Advice = "recommend" // people are shown it
	AdviceApply     Advice = "apply"     // the scheduler gets it
)

// Narrow returns the policy without what the site does not allow; own bounds cores, memory and GPUs
// unless the site opts in to more.
func (s Site) Narrow(p Policy, own Settings) Policy {
	out := p
	out.Mode = p.Mode.AtMost(s.MaxMode)
	if s.JobRestarts > 0 {
		out.Budget.Restarts = min(out.Budget.Restarts, s.JobRestarts)
	}
	if s.KindReturns > 0 {
		out.Budget.Returns = min(out.Budget.Returns, s.KindReturns)
	}
	if !s.MayRestart {
		out.Checkpoint = nil
	}
	out.Knobs, out.Limits = nil, slices.Clone(p.Limits)
	for _, k := range p.Knobs {
		if s.Knobs != nil && !slices.Contains(s.Knobs, k.Name) {
			out.Limits = append(out.Limits, Limit{Knob: k.Name, Why: "the site's policy does not name it", Rule: s.Rule("knobs")})
			continue
		}
		some := true
		if ceiling, key, ok := s.ceiling(k.Name, own); ok {
			var taken []Limit
			k, taken, some = k.atMost(ceiling, s.Rule(key))
			out.Limits = append(out.Limits, taken...)
		}
		if some {
			out.Knobs = append(out.Knobs, k)
		}
	}
	return out
}

func (s Site) ceiling(name string, own Settings) (v Value, key string, ok bool) {
	limit, bounded := s.Ceilings[name]
	asked, known := own[name]
	requested := name == Cores || name == Memory || name == GPUs
	if requested && known && asked.IsNumber() && !s.AboveRequest {
		if !bounded || asked.Float() < limit.Float() {
			return asked, "above_request", true
		}
	}
	return limit, "ceilings." + name, bounded
}

// atMost is the knob without what is above the site's ceiling, and what that takes away. Not ok: no
// value is left.
func (k Knob) atMost(ceiling Value, rule Rule) (narrowed Knob, taken []Limit, ok bool) {
	within := func(v Value) bool { return !v.IsNumber() || v.Float() <= ceiling.Float() }
	over := slices.DeleteFunc(append(slices.Clone(k.Values), k.Max), within)
	if len(over) > 0 {
		why := fmt.Sprintf("%s=%s is above the site's ceiling of %s", k.Name, k.spell(over...), k.spell(ceiling))
		if rule.Name == "above_request" {
			why = fmt.Sprintf("%s=%s is above your request of %s; the site's policy lacks above_request", k.Name, k.spell(over...), k.spell(ceiling))
		}
		taken = []Limit{{Knob: k.Name, Why: why, Rule: rule}}
	}
	if len(k.Values) > 0 {
		k.Values = slices.DeleteFunc(slices.Clone(k.Values), func(v Value) bool { return !within(v) })
		return k, taken, len(k.Values) > 0
	}
	// A knob that follows another has no own range until now; one with neither values nor range
	// allows nothing, and must not begin to.
	if !within(k.Max) || !k.Max.IsSet() && (k.Min.IsSet() || k.Follows != "") {
		k.Max = ceiling
	}
	return k, taken, !k.Min.IsSet() || k.Min.Float() <= k.Max.Float()
}

// Reach is what a scheduler can bring to a job.
type Reach struct {
	Scheduler string
	Env       bool              // other environment variables
	Args      bool              // other command-line arguments
	Live      bool              // the settings file
	Memory    bool              // less memory: a kill for too little of it can be made good
	Lacks     Rule              // what it would need for Env and Live; zero = nothing helps
	Follow    map[string]string // variables that the script itself takes from the job's cores, and where
	Observed  string            // why it changes nothing of this job; empty = it does
	Stays     string            // why it does not restart this job; empty = it may
	Limit     time.Duration     // of the job's run time; 0 = unknown, or none
	Whole     string            // why the number of its cores stays; empty = it may change
}

// Carried is the policy without the knobs that a scheduler cannot bring to a job in every way that
// the stanza names.
func (p Policy) Carried(r Reach) Policy {
	out := p
	out.Knobs, out.Limits = nil, slices.Clone(p.Limits)
	for _, k := range p.Knobs {
		why, rule := "", Rule{Name: "driver", Value: r.Scheduler}
		switch {
		case k.Env != "" && !r.Env && (k.Follows != Cores || r.Follow[k.Env] == ""):
			why, rule = fmt.Sprintf("%s cannot change the variable %s of a job", r.Scheduler, k.Env), cmp.Or(r.Lacks, rule)
			if k.Follows == Cores {
				why += "; it follows where the script says export " + k.Env + "=${" + k.Env + ":-$SLURM_CPUS_PER_TASK}"
			}
		case k.Arg != "" && !r.Args:
			why = fmt.Sprintf("%s cannot change the argument %s of a job", r.Scheduler, k.Arg)
		case k.Live && !r.Live:
			why, rule = r.Scheduler+" gives a job no settings file", cmp.Or(r.Lacks, rule)
		case k.Name == Cores && r.Whole != "":
			why = r.Whole
		case k.Name == Memory && !r.Memory:
			why = "a job that is killed for too little memory has ended under " + r.Scheduler + ", so its memory is never lowered"
		default:
			out.Knobs = append(out.Knobs, k)
			continue
		}
		out.Limits = append(out.Limits, Limit{Knob: k.Name, Why: why, Rule: rule})
	}
	return out
}
