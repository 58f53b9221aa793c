package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"pitchpipe/controller/tuning"
)

// siteKey is one key of a block of the site's policy: the one place that knows it.
type siteKey struct {
	name string
	want string
	doc  string
	wide bool // it counts over the whole cluster, so only the default block may set it
	read func(d *document, path string, n *yaml.Node) change
}

// siteKeys lists the keys in the order of the reference.
func siteKeys() []siteKey {
	return []siteKey{
		{
			name: "max_mode", want: "observe, recommend or apply",
			doc:  "the highest mode that a stanza may ask for",
			read: one(readMode, func(s *tuning.Site, v tuning.Mode) { s.MaxMode = v }),
		},
		{
			name: "knobs", want: "a list of knobs, or all",
			doc:  "the knobs that may be changed",
			read: readKnobs,
		},
		{
			name: "ceilings", want: "a block of knobs, each with a number, an amount of memory, or none",
			doc:  "the highest value of single knobs; none lifts a ceiling that a wider block set",
			read: readCeilings,
		},
		{
			name: "above_request", want: "true or false",
			doc:  "a job may get more cores, memory and GPUs than its owner asked for",
			read: one(readBool, func(s *tuning.Site, v bool) { s.AboveRequest = v }),
		},
		{
			name: "may_restart", want: "true or false",
			doc:  "a running job may be checkpointed and restarted",
			read: one(readBool, func(s *tuning.Site, v bool) { s.MayRestart = v }),
		},
		{
			name: "dry_run", want: "true or false",
			doc:  "decide and record, and change nothing",
			read: one(readBool, func(s *tuning.Site, v bool) { s.DryRun = v }),
		},
		{
			name: "control", want: "a number from 0 to 1",
			doc:  "share of the eligible jobs that stays untuned at random, the first of a kind left out, so that savings have something to be measured against",
			read: one(readShare, func(s *tuning.Site, v float64) { s.Control = v }),
		},
		{
			name: "job_restarts", want: "a whole number",
			doc:  "most restarts of one job; 0 for what its stanza says",
			read: one(readCount, func(s *tuning.Site, v int) { s.JobRestarts = v }),
		},
		{
			name: "kind_returns", want: "a whole number",
			doc:  "most runs of one kind of job that may try a setting from their start; 0 for what its stanza says",
			read: one(readCount, func(s *tuning.Site, v int) { s.KindReturns = v }),
		},
		{
			name: "user_restarts", want: "a whole number",
			doc:  "most restarts of one user's jobs in an hour; 0 for no limit",
			read: one(readCount, func(s *tuning.Site, v int) { s.UserRestarts = v }),
		},
		{
			name: "total_restarts", want: "a whole number", wide: true,
			doc:  "most restarts in an hour on the whole cluster; 0 for no limit",
			read: one(readCount, func(s *tuning.Site, v int) { s.TotalRestarts = v }),
		},
		{
			name: "max_tuned", want: "a whole number", wide: true,
			doc:  "most jobs that are tuned at a time on the whole cluster; 0 for no limit",
			read: one(readCount, func(s *tuning.Site, v int) { s.MaxTuned = v }),
		},
		{
			name: "probe_share", want: "a number from 0 to 1",
			doc:  "largest share of a job's epochs that is spent on probes, of the runs of a kind that try a setting from their start, and of the live jobs of a kind that run under one which is only predicted; 0 for none",
			read: one(readShare, func(s *tuning.Site, v float64) { s.ProbeShare = v }),
		},
		{
			name: "limit_reserve", want: "a time such as 5m",
			doc:  "no restart this near to the job's time limit",
			read: one(tuning.ParseDuration, func(s *tuning.Site, v time.Duration) { s.LimitReserve = v }),
		},
		{
			name: "margin", want: "a number of at least 1",
			doc:  "the predicted saving has to exceed the cost of the restart this many times",
			read: one(readMargin, func(s *tuning.Site, v float64) { s.Margin = v }),
		},
		{
			name: "prices", want: "a block of core_hour, gib_hour, gpu_hour, kwh and unit, or from-slurm",
			doc: "what a job is charged for what it asks for, by the hour, and for its joules; a block replaces all prices of a wider one, and what it leaves out is free. " +
				"from-slurm: by TRESBillingWeights and MAX_TRES, in billing-hours. Without prices a core-hour costs 1. It is what objective=cost makes small",
			read: readPrices,
		},
		{
			name: "enforce_model", want: "true or false",
			doc:  "modelled joules may support claims and budgets",
			read: one(readBool, func(s *tuning.Site, v bool) { s.EnforceModel = v }),
		},
		{
			name: "share_classes", want: "true or false",
			doc:  "what jobs of other users taught about a class may move this one, by system knobs only",
			read: one(readBool, func(s *tuning.Site, v bool) { s.ShareClasses = v }),
		},
		{
			name: "pause_after", want: "a whole number", wide: true,
			doc:  "regressions until the tuner pauses itself; 0 for never",
			read: one(readCount, func(s *tuning.Site, v int) { s.PauseAfter = v }),
		},
	}
}

func siteKeyNames() []string {
	var names []string
	for _, k := range siteKeys() {
		names = append(names, k.name)
	}
	return names
}

// parseSite reads a policy file.
func parseSite(file string, data []byte) (*SitePolicy, error) {
	d := document{file: file}
	p := &SitePolicy{scope: map[string]map[string][]change{}}
	for _, top := range d.pairs("", d.parse(data)) {
		name := top.key.Value
		switch {
		case name == "default":
			p.base = d.block(name, top.value, true)
		case slices.Contains(scopes(), name):
			p.scope[name] = map[string][]change{}
			for _, one := range d.pairs(name, top.value) {
				if one.key.Value == "" {
					d.fault(one.key, name, "an empty name", "want the name of a "+name)
					continue
				}
				p.scope[name][one.key.Value] = d.block(join(name, one.key.Value), one.value, false)
			}
		default:
			d.faults = append(d.faults, unknown(d.at(top.key), "", name, append([]string{"default"}, scopes()...)))
		}
	}
	if len(d.faults) > 0 {
		return nil, d.faults.sorted()
	}
	return p, nil
}

func (d *document) block(path string, n *yaml.Node, base bool) []change {
	var out []change
	for _, p := range d.pairs(path, n) {
		if p.key.Value == "expected_saving" {
			d.fault(p.key, join(path, p.key.Value), "this key is gone",
				"want the line deleted: the response model now predicts what each setting saves from the job's first epochs, and nothing has to be set")
			continue
		}
		i := slices.Index(siteKeyNames(), p.key.Value)
		if i < 0 {
			d.faults = append(d.faults, unknown(d.at(p.key), path, p.key.Value, siteKeyNames()))
			continue
		}
		k := siteKeys()[i]
		name := join(path, k.name)
		if k.wide && !base {
			d.fault(p.key, name, "it counts over the whole cluster", "want it in the default block")
			continue
		}
		if c := k.read(d, name, p.value); c != nil {
			from := fmt.Sprintf("%s:%d", d.file, p.key.Line)
			out = append(out, func(s *tuning.Site) {
				c(s)
				s.Sources[k.name] = from
			})
		}
	}
	return out
}

// one makes the reader of a key with a single value.
func one[T any](parse func(string) (T, error), set func(*tuning.Site, T)) func(*document, string, *yaml.Node) change {
	return func(d *document, path string, n *yaml.Node) change {
		text, ok := d.text(path, n)
		if !ok {
			return nil
		}
		v, err := parse(text)
		if err != nil {
			d.fault(n, path, fmt.Sprintf("found %q", text), wanted(err))
			return nil
		}
		return func(s *tuning.Site) { set(s, v) }
	}
}

func readMode(s string) (tuning.Mode, error) {
	if !slices.Contains(tuning.Modes(), tuning.Mode(s)) {
		return "", errors.New("want observe, recommend or apply")
	}
	return tuning.Mode(s), nil
}

func readBool(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, errors.New("want true or false")
	}
}

func readShare(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, errors.New("want a number from 0 to 1")
	}
	return v, nil
}

// readMargin refuses margins under 1, which would move jobs at a predicted loss.
func readMargin(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 1) || math.IsInf(v, 0) {
		return 0, errors.New("want a number of at least 1")
	}
	return v, nil
}

func readCount(s string) (int, error) {
	var n int
	if err := setInt(&n, s, 1_000_000); err != nil {
		return 0, err
	}
	return n, nil
}

// readKnobs reads a list of knobs. An empty list allows none; the word all allows
// every one, which undoes the list of a wider block.
func readKnobs(d *document, path string, n *yaml.Node) change {
	if n.Kind == yaml.ScalarNode && n.Value == "all" {
		return func(s *tuning.Site) { s.Knobs = nil }
	}
	if n.Kind != yaml.SequenceNode {
		d.fault(n, path, "found "+kindOf(n), "want a list of knobs such as [cores, memory], or all")
		return nil
	}
	names := []string{}
	for _, item := range n.Content {
		switch {
		case item.Kind != yaml.ScalarNode || !isKnobName(item.Value):
			d.fault(item, path, "found "+kindOf(item), "want the name of a knob")
		case slices.Contains(names, item.Value):
			d.fault(item, path, fmt.Sprintf("%q stands here a second time", item.Value), "want it once")
		default:
			names = append(names, item.Value)
		}
	}
	return func(s *tuning.Site) { s.Knobs = slices.Clone(names) }
}

// fromSlurm are the prices of a site whose scheduler says what it bills.
const fromSlurm = "from-slurm"

// readPrices reads a tariff.
func readPrices(d *document, path string, n *yaml.Node) change {
	if n.Kind == yaml.ScalarNode && n.Value == fromSlurm {
		return func(s *tuning.Site) { s.Tariff = tuning.Tariff{Billed: true} }
	}
	if n.Kind != yaml.MappingNode {
		d.fault(n, path, "found "+kindOf(n), "want a block of prices, or "+fromSlurm)
		return nil
	}
	var t tuning.Tariff
	prices := map[string]*float64{"core_hour": &t.CoreHour, "gib_hour": &t.GiBHour, "gpu_hour": &t.GPUHour, "kwh": &t.KWh}
	before, costs := len(d.faults), false
	for _, p := range d.pairs(path, n) {
		name := p.key.Value
		price, isPrice := prices[name]
		if !isPrice && name != "unit" {
			d.faults = append(d.faults, unknown(d.at(p.key), path, name, append(slices.Sorted(maps.Keys(prices)), "unit")))
			continue
		}
		text, ok := d.text(join(path, name), p.value)
		switch v, err := strconv.ParseFloat(text, 64); {
		case !ok:
		case !isPrice && !regexp.MustCompile(`^[\pL\p{Sc}][-\pL\pN\p{Sc}]{0,15}$`).MatchString(text):
			d.fault(p.value, join(path, name), fmt.Sprintf("found %q", text), "want a word such as EUR")
		case !isPrice:
			t.Unit = text
		case err != nil || !(v >= 0) || math.IsInf(v, 0):
			d.fault(p.value, join(path, name), fmt.Sprintf("found %q", text), "want a number of at least 0")
		default:
			*price, costs = v, costs || v > 0
		}
	}
	switch {
	case len(d.faults) > before:
		return nil
	case !costs:
		d.fault(n, path, "everything is free", "want a price above 0")
		return nil
	case t.Unit == "":
		d.fault(n, path, "prices without a unit", "want unit, such as EUR")
		return nil
	}
	return func(s *tuning.Site) { s.Tariff = t }
}

// readCeilings reads the highest values of single knobs.
func readCeilings(d *document, path string, n *yaml.Node) change {
	values, from := tuning.Settings{}, map[string]string{}
	for _, p := range d.pairs(path, n) {
		name := p.key.Value
		from["ceilings."+name] = fmt.Sprintf("%s:%d", d.file, p.key.Line)
		if !isKnobName(name) {
			d.fault(p.key, path, fmt.Sprintf("found %q", name), "want the name of a knob")
			continue
		}
		text, ok := d.text(join(path, name), p.value)
		if !ok {
			continue
		}
		v, err := readCeiling(name, text)
		if err != nil {
			d.fault(p.value, join(path, name), fmt.Sprintf("found %q", text), wanted(err))
			continue
		}
		values[name] = v
	}
	return func(s *tuning.Site) {
		maps.Copy(s.Sources, from)
		s.Ceilings = s.Ceilings.Clone()
		for name, v := range values {
			s.Ceilings[name] = v
			if !v.IsSet() {
				delete(s.Ceilings, name)
			}
		}
	}
}

// readCeiling returns the zero Value for none.
func readCeiling(knob, text string) (tuning.Value, error) {
	if text == "none" {
		return tuning.Value{}, nil
	}
	if knob == tuning.Memory {
		b, err := tuning.ParseBytes(text)
		if err != nil {
			return tuning.Value{}, err
		}
		if b == 0 {
			return tuning.Value{}, errors.New("want more than nothing")
		}
		return tuning.Number(float64(b)), nil
	}
	v := tuning.ParseValue(text)
	if !v.IsNumber() || v.Float() <= 0 {
		return tuning.Value{}, errors.New("want a number above 0, or none")
	}
	return v, nil
}

func isKnobName(s string) bool {
	return len(s) <= 64 && !strings.Contains(s, "\n") && regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(s)
}
