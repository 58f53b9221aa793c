package stanza

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
)

var (
	knobName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	flagName = regexp.MustCompile(`^--?[A-Za-z][A-Za-z0-9_.-]*$`)
)

// knobs judges every knob, then what they say about each other.
func (j *judge) knobs(p *tuning.Policy, blocks []*jobfile.Block) {
	var read []fields
	first, carriers := map[string]jobfile.Pos{}, map[string]string{}
	for _, b := range blocks {
		at, ok := j.label(b, first)
		if !ok {
			continue
		}
		k := tuning.Knob{Name: b.Label}
		f := j.read(b, subject{knob: &k})
		j.carrier(&k, f, at, carriers)
		j.span(&k, f, at)
		j.untuned(&k, f, at, p.Search != nil)
		p.Knobs, read = append(p.Knobs, k), append(read, f)
	}
	for i, k := range p.Knobs {
		j.follows(k, p.Knobs, read[i])
		j.when(*p, k, read[i])
	}
}

// label judges the name of a knob or an action; first says where the others are.
func (j *judge) label(b *jobfile.Block, first map[string]jobfile.Pos) (at jobfile.Pos, ok bool) {
	at = b.Pos
	if b.Label != "" {
		at = b.LabelPos
	}
	if old, twice := first[b.Label]; twice && b.Label != "" {
		j.fail(at, fmt.Sprintf("the %s %q is given twice", b.Type, b.Label), fmt.Sprintf("the first is at %s", old))
		return at, false
	}
	first[b.Label] = at
	if knobName.MatchString(b.Label) {
		return at, true
	}
	article := map[bool]string{true: "a ", false: "an "}[b.Type == "knob"]
	found := fmt.Sprintf("%s%s with the name %q", article, b.Type, b.Label)
	if b.Label == "" {
		found = article + b.Type + " without a name"
	}
	j.fail(at, found, "want a name of letters, digits, _ and - that begins with a letter")
	return at, false
}

// actions judges the actions, which share the settings file with live knobs.
func (j *judge) actions(p *tuning.Policy, actions []*jobfile.Block, blocks map[string]fields) {
	first := map[string]jobfile.Pos{}
	for _, b := range actions {
		at, ok := j.label(b, first)
		if !ok {
			continue
		}
		o := tuning.Offer{Name: b.Label, Max: 1}
		j.read(b, subject{action: &o})
		switch k, taken := p.Knob(o.Name); {
		case taken && k.Live:
			j.fail(at, fmt.Sprintf("the action %q has the name of a live knob", o.Name), "want another name: both stand in the settings file")
		case blocks["quality"].block == nil:
			j.fail(at, fmt.Sprintf("the action %q without a quality", o.Name), "want a quality block: runs with and without it are compared by that")
		case p.Search != nil:
			j.fail(at, fmt.Sprintf("the action %q with a search", o.Name), "want one of them: trials are compared by their hyperparameters")
		}
		p.Actions = append(p.Actions, o)
	}
}

// carrier judges how the value reaches the job. carriers holds what other knobs
// use, by "env NAME" or "arg --flag".
func (j *judge) carrier(k *tuning.Knob, f fields, at jobfile.Pos, carriers map[string]string) {
	var used []string
	for _, name := range []string{"env", "arg"} {
		d, ok := f.get(name)
		if f.given(name) {
			used = append(used, name)
		}
		if !ok {
			continue
		}
		if other, taken := carriers[name+" "+d.text]; taken {
			j.fail(d.at, fmt.Sprintf("%s %s carries the knob %q already", name, d.text, other), "want each to carry one knob")
		}
		carriers[name+" "+d.text] = k.Name
		if name == "env" {
			j.env(d, f.given("follows"))
		} else {
			j.arg(d)
		}
	}
	if k.Live = k.Live || f.data["live"].bad; k.Live {
		used = append(used, "live")
	}
	switch {
	case len(used) > 1:
		slices.SortFunc(used, func(a, b string) int {
			return slices.Index(namesOf(keysOf("knob")), a) - slices.Index(namesOf(keysOf("knob")), b)
		})
		j.fail(at, fmt.Sprintf("the knob %q has %s", k.Name, strings.Join(used, " and ")), "want one way for the value to reach the job")
	case len(used) == 0 && !tuning.IsSystem(k.Name) && !f.strange:
		want := "want env, arg or live = true, which say how the value reaches the job"
		if j.job.Format == jobfile.Sbatch {
			want = "want env=NAME or live=true, which say how the value reaches the job"
		}
		if near := cmp.Or(tuning.OtherNames()[k.Name], jobfile.Nearest(k.Name, tuning.SystemKnobs())); near != "" {
			want += fmt.Sprintf("; did you mean the system knob %q?", near)
		}
		j.fail(at, fmt.Sprintf("nothing carries the hyperparameter %q to the job", k.Name), want)
	}
}

// A script may take what follows another knob from its scheduler.
func (j *judge) env(d datum, follows bool) {
	key, _ := keyOf("knob", "env")
	at, fixed := j.job.Fixed[d.text]
	from, computed := j.job.Computed[d.text]
	switch {
	case !envName.MatchString(d.text):
		j.fail(d.at, fmt.Sprintf("env is %q", d.text), "want "+key.allowed())
	case jobfile.IsDenied(d.text):
		j.fail(d.at, fmt.Sprintf("env is %q, which is never set by the tuner", d.text), "want "+key.allowed())
	case fixed:
		j.fail(d.at, fmt.Sprintf("the script itself sets %s at line %d, which would undo the knob", d.text, at.Line),
			fmt.Sprintf("want %s=${%s:-%s} there", d.text, d.text, j.job.Env[d.text]))
	case computed && !follows:
		j.fail(d.at, fmt.Sprintf("the script itself sets %s at line %d, which would undo the knob", d.text, from.Line),
			fmt.Sprintf("want %s=${%s:-VALUE} there, or a knob that follows cores", d.text, d.text))
	}
}

func (j *judge) arg(d datum) {
	key, _ := keyOf("knob", "arg")
	switch {
	case !flagName.MatchString(d.text):
		j.fail(d.at, fmt.Sprintf("arg is %q", d.text), "want "+key.allowed())
	case j.job.Format == jobfile.Sbatch:
		j.fail(d.key, "arg in a batch script", "want env: a script has no command line that could be changed")
	}
}

func (j *judge) span(k *tuning.Knob, f fields, at jobfile.Pos) {
	if f.given("follows") {
		for _, name := range []string{"quality", "values", "min", "max", "scale", "default", "when"} {
			if d, ok := f.get(name); ok {
				j.fail(d.key, name+" of a knob that follows another", "want only its carrier: it has the values of the knob that it follows")
			}
		}
		return
	}
	low, hasMin := f.get("min")
	high, hasMax := f.get("max")
	values, hasValues := f.get("values")
	scale, hasScale := f.get("scale")
	switch {
	case hasValues && (hasMin || hasMax):
		j.fail(values.key, "values with min and max", "want one of them")
	case f.strange:
	case !f.given("values", "min", "max"):
		j.fail(at, fmt.Sprintf("the knob %q has no values", k.Name), "want values, min and max, or follows")
	case f.given("min") != f.given("max") && !hasValues:
		j.fail(at, fmt.Sprintf("the knob %q has only one of min and max", k.Name), "want both")
	}
	if hasValues {
		j.values(k, values)
		if hasScale {
			j.fail(scale.key, "scale with values", "want it only with min and max")
		}
		return
	}
	k.Min, k.Max = j.bound(k.Name, low), j.bound(k.Name, high)
	if (hasMin || hasMax) && !hasScale {
		k.Scale = tuning.Linear
	}
	if k.Min.IsSet() && k.Max.IsSet() && k.Min.Float() >= k.Max.Float() {
		j.fail(high.at, fmt.Sprintf("max is %s and min is %s", tuning.Spell(k.Name, k.Max), tuning.Spell(k.Name, k.Min)), "want min below max")
	}
	if hasScale && k.Scale != tuning.Linear && k.Min.IsSet() && k.Min.Float() <= 0 {
		j.fail(low.at, fmt.Sprintf("min is %s with the scale %s", tuning.Spell(k.Name, k.Min), k.Scale), "want min above 0")
	}
}

func (j *judge) bound(name string, d datum) (v tuning.Value) {
	for _, item := range d.items {
		if v = j.value(name, item); v.IsSet() && !v.IsNumber() {
			j.fail(d.at, fmt.Sprintf("a bound of %q is the word %q", name, v), "want a number")
			return tuning.Value{}
		}
	}
	return v
}

func (j *judge) values(k *tuning.Knob, d datum) {
	if len(d.items) == 0 {
		j.fail(d.at, "values is an empty list", "want at least one value")
	}
	for _, item := range d.items {
		v := j.value(k.Name, item)
		switch {
		case !v.IsSet():
		case slices.Contains(k.Values, v):
			j.fail(item.Pos, fmt.Sprintf("the value %s stands twice", tuning.Spell(k.Name, v)), "want different values")
		default:
			k.Values = append(k.Values, v)
		}
	}
}

func (j *judge) untuned(k *tuning.Knob, f fields, at jobfile.Pos, searching bool) {
	d, ok := f.get("default")
	switch {
	case f.given("follows"):
	case ok && (k.Name == tuning.Cores || k.Name == tuning.Memory):
		j.fail(d.key, "default of "+k.Name, "want none: it is what the job asks its scheduler for")
	case ok:
		k.Default = j.value(k.Name, d.items[0])
	case searching && k.Quality == "": // the search sets it
	case !f.given("default") && !tuning.IsSystem(k.Name) && !f.strange && (k.Env != "" || k.Arg != "" || k.Live):
		if _, known := shown(j.job, *k); !known {
			j.fail(at, fmt.Sprintf("the untuned value of %q is not known", k.Name), "want default, or the value in the job file's own env or args")
		}
	}
}

func (j *judge) follows(k tuning.Knob, all []tuning.Knob, f fields) {
	d, ok := f.get("follows")
	if !ok {
		return
	}
	var names []string
	for _, other := range all {
		if other.Name != k.Name {
			names = append(names, other.Name)
		}
	}
	i := slices.IndexFunc(all, func(o tuning.Knob) bool { return o.Name == d.text })
	counts := []string{tuning.Cores, tuning.Threads, tuning.GPUs} // they count the same
	switch {
	case d.text == k.Name:
		j.fail(d.at, fmt.Sprintf("the knob %q follows itself", k.Name), "want another knob")
	case i < 0:
		want := "want another knob of this stanza"
		if len(names) > 0 {
			want += ": " + oneOf(names) + jobfile.Suggestion(d.text, names)
		}
		j.fail(d.at, fmt.Sprintf("follows is %q, which is no knob here", d.text), want)
	case all[i].Follows != "":
		j.fail(d.at, fmt.Sprintf("follows is %q, which follows another knob itself", d.text), fmt.Sprintf("want %q, or another knob that follows none", all[i].Follows))
	case tuning.IsSystem(k.Name) && !(slices.Contains(counts, k.Name) && slices.Contains(counts, d.text)):
		j.fail(d.at, fmt.Sprintf("the system knob %q follows %q", k.Name, d.text), "want one that counts the same: "+oneOf(counts)+", which follow each other")
	}
}

func (j *judge) when(p tuning.Policy, k tuning.Knob, f fields) {
	d, ok := f.get("when")
	if !ok {
		return
	}
	varied := p.Searched()
	_, mine := tuning.First(varied, func(o tuning.Knob) bool { return o.Name == k.Name })
	varied = slices.DeleteFunc(varied, func(o tuning.Knob) bool { return o.Name == k.Name || len(o.Values) == 0 })
	lead, known := tuning.First(varied, func(o tuning.Knob) bool { return o.Name == k.When.Knob })
	switch {
	case p.Search == nil:
		j.fail(d.key, "when without a search block", "want it only with one: in a single job every knob counts")
	case !mine && k.Follows == "":
		j.fail(d.key, fmt.Sprintf("when of the knob %q, which the search does not vary", k.Name), "want it of a hyperparameter")
	case !mine:
	case circular(p, k):
		j.fail(d.at, fmt.Sprintf("the knob %q depends on itself", k.Name), "want conditions without a circle")
	case len(varied) == 0:
		j.fail(d.at, fmt.Sprintf("when names %q", k.When.Knob), "want another knob with a list of values that the search varies, and there is none")
	case !known:
		names := tuning.Each(varied, func(o tuning.Knob) string { return o.Name })
		j.fail(d.at, fmt.Sprintf("when names %q", k.When.Knob), "want a knob with a list of values that the search varies: "+oneOf(names)+jobfile.Suggestion(k.When.Knob, names))
	case !lead.Allows(k.When.Value):
		values := tuning.Each(lead.Values, tuning.Value.String)
		j.fail(d.at, fmt.Sprintf("%s is never %q", lead.Name, k.When.Value), "want "+oneOf(values)+jobfile.Suggestion(k.When.Value.String(), values))
	}
}

// circular reports whether the condition of a knob depends on itself by way of others.
func circular(p tuning.Policy, k tuning.Knob) bool {
	for on, steps := k, 0; on.When != nil && steps < len(p.Knobs); steps++ {
		if on.When.Knob == k.Name {
			return true
		}
		on, _ = p.Knob(on.When.Knob)
	}
	return false
}
