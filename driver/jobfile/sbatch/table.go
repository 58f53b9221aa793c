package sbatch

// takes reports whether an option has an argument.
type takes uint8

const (
	nothing takes = iota
	argument
	maybe // only joined by an equals sign
)

// option is one option of sbatch.
type option struct {
	long  string
	short byte // 0 = none
	takes takes
	use   func(p *parser, at place, value string) // nil = accepted and ignored
	why   string                                  // not empty: refused for this reason

	slurms bool // refused only where Slurm does not run the script
}

// place is where an option and its value stand.
type place struct {
	line          int
	name          string // as written: --time or -t
	column, value int    // columns of the option and of its value
}

// options lists every option that is known. Those without use and why do not
// change what a job does on one machine, or only where its output's errors, mail
// or accounting go.
func options() []option {
	return append(taken(), append(refused(), ignored()...)...)
}

func taken() []option {
	return []option{
		{long: "cpus-per-task", short: 'c', takes: argument, use: (*parser).cores},
		{long: "mem", takes: argument, use: (*parser).memory},
		{long: "mem-per-cpu", takes: argument, use: (*parser).memoryPerCore},
		{long: "time", short: 't', takes: argument, use: (*parser).timeLimit},
		{long: "job-name", short: 'J', takes: argument, use: (*parser).name},
		{long: "output", short: 'o', takes: argument, use: (*parser).output},
		{long: "chdir", short: 'D', takes: argument, use: (*parser).dir},
		{long: "partition", short: 'p', takes: argument, use: (*parser).partition},
		{long: "account", short: 'A', takes: argument, use: (*parser).account},
		{long: "requeue", use: (*parser).requeue},
		{long: "no-requeue", use: (*parser).noRequeue},
		{long: "nodes", short: 'N', takes: argument, use: (*parser).onlyOne},
		{long: "ntasks", short: 'n', takes: argument, use: (*parser).onlyOne},
		{long: "ntasks-per-node", takes: argument, use: (*parser).onlyOne},
		{long: "export", takes: argument, use: (*parser).export},
		{long: "open-mode", takes: argument, use: (*parser).openMode},
		{long: "deadline", takes: argument, use: (*parser).observed},
		{long: "exclusive", takes: maybe, use: (*parser).exclusive},
	}
}

func refused() []option {
	const toSlurm = "; submit them to Slurm"
	return []option{
		{long: "array", short: 'a', takes: argument, why: "arrays are not run by the local scheduler" + toSlurm, slurms: true},
		{long: "dependency", short: 'd', takes: argument, why: "dependencies are not known to the local scheduler" + toSlurm, slurms: true},
		{long: "begin", short: 'b', takes: argument, why: "deferred starts are not known to the local scheduler" + toSlurm, slurms: true},
		{long: "hold", short: 'H', why: "held jobs are not known to the local scheduler" + toSlurm, slurms: true},
		{long: "clusters", short: 'M', takes: argument, why: "other clusters are not known to the local scheduler" + toSlurm, slurms: true, use: (*parser).clusters},
		{long: "input", short: 'i', takes: argument, why: "the input is not connected by the local scheduler; redirect it inside the script with <", slurms: true},
		{long: "container", takes: argument, why: "containers are not run by the local scheduler" + toSlurm, slurms: true},
		{long: "export-file", takes: argument, why: "an environment file is not read; set the variables inside the script", slurms: true},
		{long: "wrap", takes: argument, why: "a script has its commands in its lines; leave the option out"},
	}
}

func ignored() []option {
	var out []option
	for _, o := range []option{
		{long: "error", short: 'e'},
		{long: "constraint", short: 'C'},
		{long: "nodelist", short: 'w'},
		{long: "exclude", short: 'x'},
		{long: "nodefile", short: 'F'},
		{long: "qos", short: 'q'},
		{long: "gpus", short: 'G'},
		{long: "licenses", short: 'L'},
		{long: "distribution", short: 'm'},
		{long: "extra-node-info", short: 'B'},
		{long: "core-spec", short: 'S'},
	} {
		o.takes = argument
		out = append(out, o)
	}
	for _, long := range []string{
		"mail-type", "mail-user", "comment", "signal", "gres", "gres-flags", "gpus-per-node",
		"gpus-per-task", "gpus-per-socket", "gpu-bind", "gpu-freq", "cpus-per-gpu", "mem-per-gpu", "mem-bind", "reservation",
		"priority", "tmp", "cpu-freq", "hint", "threads-per-core", "cores-per-socket", "sockets-per-node",
		"ntasks-per-core", "ntasks-per-socket", "ntasks-per-gpu", "profile", "acctg-freq", "switches", "time-min",
		"wckey", "thread-spec", "mincpus", "delay-boot", "power", "wait-all-nodes", "network", "mcs-label",
		"kill-on-invalid-dep", "bb", "bbf", "prefer", "extra", "tres-per-task",
	} {
		out = append(out, option{long: long, takes: argument})
	}
	for _, long := range []string{"nice", "propagate", "get-user-env"} {
		out = append(out, option{long: long, takes: maybe})
	}
	return append(out,
		option{long: "oversubscribe", short: 's'},
		option{long: "overcommit", short: 'O'},
		option{long: "quiet", short: 'Q'},
		option{long: "verbose", short: 'v'},
		option{long: "no-kill", short: 'k', takes: maybe},
		option{long: "wait", short: 'W'},
		option{long: "contiguous"},
		option{long: "parsable"},
		option{long: "spread-job"},
		option{long: "use-min-nodes"},
		option{long: "reboot"},
		option{long: "ignore-pbs"},
		option{long: "test-only"},
	)
}
