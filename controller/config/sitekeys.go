package config

import "pitchpipe/controller/tuning"

// siteKey is one key of a block of the site's policy. A dotted name is in a block of its own.
type siteKey struct {
	name string
	Type
	help string
	wide bool // it counts over the whole cluster, so only the default block may set it
}

// fromSlurm are the prices of a site whose scheduler says what it bills.
const fromSlurm = "from-slurm"

const knobPattern = `[A-Za-z_][A-Za-z0-9_]{0,63}`

func knobs() Type { return matching("the name of a knob", knobPattern) }

// siteKeys lists the keys in the order of the reference.
func siteKeys() []siteKey {
	const most = 1_000_000
	count, share, price := whole(0, most), numbers(0, 1), numbers(0, unbounded)
	positive := func(s string) bool { return price.valid(s) && tuning.ParseValue(s).Float() > 0 }
	positiveMemory := func(s string) bool { b, err := tuning.ParseBytes(s); return err == nil && b > 0 }
	allowed := optional(list("knobs", knobPattern))
	allowed.want = "a list of knobs such as [cores, memory], each once, or all"
	billed := words(fromSlurm)
	billed.want = "a block of prices, or " + fromSlurm
	return []siteKey{
		{name: "max_mode", Type: words("observe", "recommend", "apply"), help: "the highest mode that a stanza may ask for"},
		{name: "knobs", Type: allowed, help: "the knobs that may be changed; an empty list allows none, and all undoes the list of a wider block"},
		{name: "ceilings.*", Type: or(Type{want: "a number above 0", valid: positive}, "none"), help: "the highest value of the knob of that name; none lifts the ceiling of a wider block"},
		{name: "ceilings.memory", Type: or(Type{want: "an amount of memory above 0 such as 4GiB", valid: positiveMemory}, "none"), help: "the same for memory"},
		{name: "expected_saving", Type: Type{want: "the line deleted: the response model predicts the saving of each setting", valid: func(string) bool { return false }}}, // of older policies
		{name: "above_request", Type: booleans(), help: "a job may get more cores, memory and GPUs than its owner asked for"},
		{name: "may_restart", Type: booleans(), help: "a running job may be checkpointed and restarted"},
		{name: "dry_run", Type: booleans(), help: "decide and record, and change nothing"},
		{name: "control", Type: share, help: "share of the eligible jobs that stays untuned at random, the first of a kind left out, so that savings have something to be measured against"},
		{name: "job_restarts", Type: count, help: "most restarts of one job; 0 for what its stanza says"},
		{name: "kind_returns", Type: count, help: "most runs of one kind of job that may try a setting from their start; 0 for what its stanza says"},
		{name: "user_restarts", Type: count, help: "most restarts of one user's jobs in an hour; 0 for no limit"},
		{name: "total_restarts", Type: count, wide: true, help: "most restarts in an hour on the whole cluster; 0 for no limit"},
		{name: "max_tuned", Type: count, wide: true, help: "most jobs that are tuned at a time on the whole cluster; 0 for no limit"},
		{name: "probe_share", Type: share, help: "largest share of a job's epochs that is spent on probes, of the runs of a kind that try a setting from their start, and of the live jobs of a kind that run under one which is only predicted; 0 for none"},
		{name: "limit_reserve", Type: times(), help: "no restart this near to the job's time limit"},
		{name: "margin", Type: numbers(1, unbounded), help: "the predicted saving has to exceed the cost of the restart this many times"},
		{name: "prices", Type: billed, help: "what a job is charged, which objective=cost minimises: from-slurm takes TRESBillingWeights and MAX_TRES, in billing-hours. Without prices a core-hour costs 1"},
		{name: "prices.core_hour", Type: price, help: "price of a core for an hour; a block of prices replaces all prices of a wider one, and what it leaves out is free"},
		{name: "prices.gib_hour", Type: price, help: "price of a GiB of memory for an hour"},
		{name: "prices.gpu_hour", Type: price, help: "price of a GPU for an hour"},
		{name: "prices.kwh", Type: price, help: "price of a kilowatt-hour of the job's energy"},
		{name: "prices.unit", Type: matching("a word such as EUR", `[\pL\p{Sc}][-\pL\pN\p{Sc}]{0,15}`), help: "unit of the prices"},
		{name: "enforce_model", Type: booleans(), help: "modelled joules may support claims and budgets"},
		{name: "share_classes", Type: booleans(), help: "what jobs of other users taught about a class may move this one, by system knobs only"},
		{name: "pause_after", Type: count, wide: true, help: "regressions until the tuner pauses itself; 0 for never"},
	}
}
