package config

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
)

// prefix starts the name of every environment variable that Load reads.
const prefix = "PITCHPIPE_"

// Key is one setting: the one place that knows it.
type Key struct {
	Name    string
	Type    Type
	Default string // {run}, {home} and {state} are directories, see REFERENCE.md
	Instead string // what counts where the key is empty
	Help    string
	Live    bool // a change of the file that it names counts without a restart
	Wide    bool // of the site's policy: it counts over the whole cluster, so only the default block may set it
}

func types(keys []Key) map[string]Type {
	out := map[string]Type{}
	for _, k := range keys {
		out[k.Name] = k.Type
	}
	return out
}

func (k Key) variable() string {
	return prefix + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))
}

func (k Key) shown() string { return cmp.Or(k.Instead, k.Default, "none") }

// Keys lists every setting in the order of the reference. A default may use the settings
// above it.
func Keys() []Key {
	const brokerSocket = "/run/pitchpipe-broker/broker.sock"
	file, namespaces := optional(paths()), list("namespaces", namePattern)
	return []Key{
		{Name: "socket", Type: sockets(), Default: "{run}/controller.sock", Help: "Unix socket on which the controller answers"},
		{Name: "state", Type: paths(), Default: "{home}", Help: "directory of the durable state"},
		{Name: "driver", Type: words("local", "slurm", "nomad"), Default: "local", Help: "the scheduler whose jobs are tuned"},
		{Name: "listen", Type: optional(loopback()), Default: "127.0.0.1:9821", Help: "TCP address of /metrics, empty for none; if the default port is taken, the controller uses a free one (with slurm.mode site it exits with an error)"},
		{Name: "job_labels", Type: booleans(), Default: "false", Help: "/metrics has pitchpipe_controller_job_info with the name, user and account of each job that has not ended; every user of the machine may read it"},
		{Name: "local.cluster", Type: names(), Default: "local", Help: "name of the embedded scheduler's cluster"},
		{Name: "local.cores", Type: whole(0, 65536), Default: "0", Help: "cores that the embedded scheduler gives to jobs; 0 for all of the machine"},
		{Name: "local.memory", Type: parses("an amount of memory such as 256MiB or 4GiB", tuning.ParseBytes, anything), Default: "0", Help: "memory that the embedded scheduler gives to jobs; 0 for all of the machine"},
		{Name: "local.dir", Type: paths(), Default: "{state}/local", Help: "directory of the embedded scheduler's jobs"},

		{Name: "exporter.socket", Type: sockets(), Default: "/run/pitchpipe/exporter.sock", Help: "Unix socket of the node's exporter"},
		{Name: "exporter.nodes", Type: optional(exporterNodes()), Instead: "the one at exporter.socket measures all jobs", Help: "where the exporter of each node is; {node} stands for the node's name at the scheduler"},
		{Name: "exporter.cert", Type: file, Help: "certificate by which exporters know the controller, where exporter.nodes begins with https", Live: true},
		{Name: "exporter.key", Type: file, Help: "private key of exporter.cert", Live: true},
		{Name: "exporter.ca", Type: file, Help: "certificate of the authority that signs the exporters' certificates", Live: true},
		{Name: "exporter.discovery", Type: words("static", "nomad", "consul"), Default: "static", Help: "how exporters are found: by exporter.nodes (static), or as a service of Nomad or Consul; the latter are reached over TLS, with certificates that name their nodes"},
		{Name: "exporter.service", Type: matching("the name of a service, or NAME@NAMESPACE", `[A-Za-z0-9_.-]+(@[A-Za-z0-9_.-]+)?`), Default: "pitchpipe-exporter", Help: "name of the exporters' service where exporter.discovery is nomad or consul; of Nomad also NAME@NAMESPACE"},

		{Name: "slurm.mode", Type: words("owner", "site"), Default: "owner", Help: "whose jobs are tuned: those of the user who runs the controller (owner), or everybody's, through the broker (site)"},
		{Name: "slurm.broker", Type: paths(), Default: brokerSocket, Help: "socket of the broker, which acts for the controller of a site"},
		{Name: "slurm.plugin", Type: booleans(), Default: "false", Help: "the site runs the shipped submission plugin: only the jobs that it marked are seen, and no script of another user is read"},
		{Name: "slurm.dir", Type: paths(), Default: "{state}/slurm", Help: "directory of what the driver for Slurm remembers of jobs"},
		{Name: "slurm.bin", Type: file, Instead: "found by PATH", Help: "directory of squeue, scontrol, sbatch and their like"},
		{Name: "slurm.conf", Type: file, Instead: "what SLURM_CONF names, or the site's", Help: "configuration of the cluster for Slurm's commands"},
		{Name: "slurm.interval", Type: period(100*time.Millisecond, time.Minute), Default: "2s", Help: "time between squeue calls, longer where they would cost over 1 % of a core"},
		{Name: "slurm.wake", Type: file, Help: "file that the site's hooks touch when a job begins or ends, so that it is seen sooner"},
		{Name: "slurm.partitions", Type: optional(list("partitions", slurmName)), Instead: "all", Help: "partitions whose jobs are seen; a job that pitchpipe run submits goes to the first"},
		{Name: "slurm.task_prolog", Type: booleans(), Default: "false", Help: "the site runs the shipped task prolog, so that environment variables and live knobs can be changed"},
		{Name: "slurm.settings", Type: paths(), Default: "{state}/slurm-env", Help: "directory from which the task prolog reads settings, as in task_prolog.conf, on a file system that all nodes share"},

		{Name: "broker.socket", Type: sockets(), Default: brokerSocket, Help: "Unix socket on which pitchpipe broker answers"},
		{Name: "broker.dir", Type: paths(), Default: "/var/lib/pitchpipe-broker", Help: "directory of what the broker remembers of jobs, and of its audit file"},
		{Name: "broker.controller", Type: list("accounts", slurmName), Default: "pitchpipe", Help: "accounts besides root that the broker answers: the controller's account"},
		{Name: "broker.accept", Type: words("plugin", "script"), Default: "plugin", Help: "what says that a job may be changed: the record of the submission plugin, or, where there is no plugin, the job's script"},
		{Name: "broker.above", Type: optional(list("partitions", slurmName)), Help: "partitions in which a job may get more than its owner asked for"},
		{Name: "broker.advice", Type: optional(list("partitions", slurmName)), Help: "partitions in which jobs without a stanza may wait with a lower time limit and priority than their owners asked for, never with more"},
		{Name: "broker.raise", Type: period(10*time.Second, time.Hour), Default: "2m", Help: "how long before a lowered time limit the broker restores the owner's limit of a running job"},
		{Name: "broker.restarts", Type: whole(1, 1000), Default: "20", Help: "limit on how often the broker requeues one job"},

		{Name: "nomad.address", Type: optional(matching("https://HOST:PORT, http://HOST:PORT or unix:///PATH", `https?://[^/?#@:\s]+(:\d{1,5})?/?|https?://\[[0-9a-fA-F:]+\](:\d{1,5})?/?|unix:///[^?#\s]{1,106}`)), Instead: "NOMAD_ADDR, else this machine's agent", Help: "address of a Nomad agent; http to another machine only without a token, which others could read on the way"},
		{Name: "nomad.namespaces", Type: optional(texts(namespaces.want+", or * alone", func(s string) bool { return s == "*" || namespaces.takes(s) })), Instead: "default", Help: "namespaces whose jobs are tuned; * for all that the token may read"},
		{Name: "nomad.people", Type: optional(matching("NAMESPACE=USER with commas between them, with * for every user", person+`(,`+person+`)*`)), Instead: "root, the controller's user, and a user of the namespace's name", Help: "users who may see and stop the jobs of a namespace, and switch off their tuning: Nomad records no owners"},
		{Name: "nomad.token_file", Type: file, Instead: "NOMAD_TOKEN, else the workload identity where the controller is a job of Nomad", Help: "file of the token, readable for its owner alone", Live: true},
		{Name: "nomad.ca", Type: file, Instead: "NOMAD_CACERT, else the machine's", Help: "certificate of the authority that signs the agent's certificate"},
		{Name: "nomad.cert", Type: file, Instead: "NOMAD_CLIENT_CERT, else none", Help: "certificate by which the agent knows the controller"},
		{Name: "nomad.key", Type: file, Instead: "NOMAD_CLIENT_KEY, else none", Help: "private key of nomad.cert"},
		{Name: "nomad.dir", Type: paths(), Default: "{state}/nomad", Help: "directory of what the driver for Nomad remembers of jobs"},
		{Name: "nomad.resync", Type: period(time.Second, time.Hour), Default: "30s", Help: "how often all jobs and allocations are read although Nomad reports no change"},

		{Name: "store.kind", Type: words("none", "file", "nomad", "consul"), Default: "none", Help: "where several controllers share their state, so that one leads and the others stand by: a file of this machine, the variables of Nomad, the keys of Consul; none for a controller that is alone"},
		{Name: "store.path", Type: file, Instead: "none: needed where store.kind is file", Help: "the shared file, the same for the controllers of a pair; each has its own state"},
		{Name: "store.prefix", Type: storePrefix(), Default: "pitchpipe", Help: "path of the state in Nomad or Consul: the same for both controllers of a pair, different for each cluster"},
		{Name: "store.address", Type: texts("an address such as https://nomad.example.org:4646, or nothing", anything), Instead: "nomad.address and NOMAD_ADDR, or CONSUL_HTTP_ADDR, else this machine's agent", Help: "address of Nomad or Consul"},
		{Name: "store.namespace", Type: optional(names()), Instead: "NOMAD_NAMESPACE, else default", Help: "Nomad's namespace of the variables"},
		{Name: "store.token_file", Type: file, Instead: "nomad.token_file, NOMAD_TOKEN or the workload identity; CONSUL_HTTP_TOKEN", Help: "file that holds the token for Nomad or Consul, readable for its owner alone"},
		{Name: "store.ttl", Type: period(10*time.Second, 10*time.Minute), Default: "15s", Help: "for how long a leader that cannot reach Nomad or Consul still leads; another one takes over after at most twice this time plus store.delay"},
		{Name: "store.delay", Type: period(time.Second, time.Minute), Default: "5s", Help: "how long no controller leads after a leader stops answering"},

		{Name: "log.level", Type: words("debug", "info", "warn", "error"), Default: "info", Help: "lower levels are left out of the log"},
		{Name: "log.format", Type: words("text", "json"), Default: "text", Help: "form of the log"},
		{Name: "resync", Type: period(time.Second, 24*time.Hour), Default: "30s", Help: "how often the controller checks each job for which no event came"},
		{Name: "site", Type: file, Default: "{site}", Instead: sitePlace + " where that file exists", Help: "file of the site's policy; a file that is named here must exist"},
	}
}

const person = namePattern + `=(\*|` + namePattern + `)`

const knobPattern = `[A-Za-z_][A-Za-z0-9_]{0,63}`

func knobs() Type { return matching("the name of a knob", knobPattern) }

// siteKeys lists the keys of a block of the site's policy, in the order of the reference. A
// dotted name is in its own block.
func siteKeys() []Key {
	count, price := whole(0, 1_000_000), atLeast(0)
	ceiling := parses("a number above 0", float, within(math.SmallestNonzeroFloat64, math.MaxFloat64))
	large := parses("an amount of memory of at least 1MiB such as 4GiB", memory, within(1<<20, math.MaxFloat64))
	allowed, others := optional(list("knobs", knobPattern)), tuning.OtherNames()
	names := allowed.read
	allowed.want = "a list of knobs such as [cores, memory], each once and by the name that a stanza uses, or all"
	allowed.read = func(s string) (any, bool) {
		v, ok := names(s)
		return v, ok && !slices.ContainsFunc(strings.Split(s, ","), func(name string) bool { return others[name] != "" })
	}
	billed := words("from-slurm")
	billed.want = "a block of prices, or from-slurm"
	keys := []Key{
		{Name: "max_mode", Type: words("observe", "recommend", "apply"), Help: "the highest mode that a stanza may ask for"},
		{Name: "knobs", Type: allowed, Help: "the knobs that may be changed; an empty list allows none, and all undoes the list of a wider block"},
		{Name: "ceilings.*", Type: or(ceiling, "none"), Help: "the highest value of the knob of that name; none lifts the ceiling of a wider block"},
		{Name: "ceilings.memory", Type: or(large, "none"), Help: "the same for memory"},
		{Name: "expected_saving", Type: never("the line deleted: the response model predicts the saving of each setting")}, // of older policies
		{Name: "above_request", Type: booleans(), Help: "a job may get more cores, memory and GPUs than its owner asked for"},
		{Name: "may_restart", Type: booleans(), Help: "a running job may be checkpointed and restarted"},
		{Name: "dry_run", Type: booleans(), Help: "decide and record, and change nothing"},
		{Name: "control", Type: share(), Help: "share of the eligible jobs and searches, except the first of a kind, that randomly stays untuned as the control group that savings are measured against"},
		{Name: "job_restarts", Type: count, Help: "restart limit per job; 0 for that of its stanza"},
		{Name: "kind_returns", Type: count, Help: "limit on runs of a kind that try a setting from their start; 0 for that of its stanza"},
		{Name: "user_restarts", Type: count, Help: "hourly restart limit per user; 0 for no limit"},
		{Name: "total_restarts", Type: count, Wide: true, Help: "hourly restart limit of the whole cluster; 0 for no limit"},
		{Name: "max_tuned", Type: count, Wide: true, Help: "limit on jobs tuned at a time on the whole cluster; 0 for no limit"},
		{Name: "allocate", Type: count, Help: "cores that the elastic jobs of a partition share: those whose stanza has mode=apply, a checkpoint and several values of cores get more or fewer so that all end soonest on average; 0 tunes each job alone. Under Slurm a job that gives cores up goes back into the queue, where jobs that do not share may be ahead of it"},
		{Name: "probe_share", Type: share(), Help: "largest share of a job's epochs spent on probes, of a kind's runs and live trials that try a setting from their start, and of a kind's live jobs under a setting that is only predicted, two more for each run that showed its effect; 0 for none"},
		{Name: "limit_reserve", Type: times(), Help: "no restart this near to the job's time limit"},
		{Name: "margin", Type: atLeast(1), Help: "the predicted saving has to exceed the cost of the restart this many times"},
		{Name: "prices", Type: billed, Help: "what a job is charged, which objective=cost minimises: from-slurm takes TRESBillingWeights and MAX_TRES, in billing-hours. Without prices a core-hour costs 1"},
		{Name: "prices.core_hour", Type: price, Help: "price of a core for an hour; a block of prices replaces all prices of a wider one, and what it leaves out is free"},
		{Name: "prices.gib_hour", Type: price, Help: "price of a GiB of memory for an hour"},
		{Name: "prices.gpu_hour", Type: price, Help: "price of a GPU for an hour"},
		{Name: "prices.kwh", Type: price, Help: "price of a kilowatt-hour of the job's energy"},
		{Name: "prices.unit", Type: matching("a word such as EUR", `[\pL\p{Sc}][-\pL\pN\p{Sc}]{0,15}`), Help: "unit of the prices"},
		{Name: "advice", Type: words("off", "recommend", "apply"), Help: "apply lowers a waiting job's time limit to what jobs like it need, recommend only shows that limit, off does neither; a job that outlives it gets its owner's limit back. On Slurm, apply needs mode site and broker.advice; Nomad takes priorities (advice_nice), and affinities for the class of nodes on which such jobs end sooner"},
		{Name: "advice_quantile", Type: parses("a number from 0.5 to 0.999", float, within(0.5, 0.999)), Help: "share of similar jobs for which the lowered time limit is long enough"},
		{Name: "advice_margin", Type: times(), Help: "time that is added to advice_quantile's limit; it should exceed broker.raise, or limits are restored early"},
		{Name: "advice_nice", Type: whole(0, 10_000), Help: "by how much the priority of a waiting job of 1000 or more expected core-hours is lowered (nice); smaller jobs are lowered less, by the logarithm; 0 for no job"},
		{Name: "enforce_model", Type: booleans(), Help: "modelled joules may support claims and budgets"},
		{Name: "share_classes", Type: booleans(), Help: "what jobs of other users taught about a class may move this one, by system knobs only"},
		{Name: "pause_after", Type: count, Wide: true, Help: "regressions until the tuner pauses itself; 0 for never"},
	}
	for other, knob := range others { // such a ceiling would bound nothing
		keys = append(keys, Key{Name: "ceilings." + other, Type: never("ceilings." + knob + " in place of ceilings." + other)})
	}
	return keys
}
