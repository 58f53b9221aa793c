package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/doctor"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/server"
	"pitchpipe/exporter/window"
)

type options struct {
	serving  server.Config  // its addresses
	sampling sampler.Config // its intervals
	kept     window.Config
	root     hostfs.Root
	rootfs   string
	state    string
	environ  string
	leaf     bool
	events   []string
	model    energy.Model
	sensors  []string
	level    string
	readers  []string
	jobs     string
	budgets  string
	gpu      gpuOptions
}

func main() {
	if os.Getenv("GOMAXPROCS") == "" {
		// Nothing here gains by two cores at once, and to wake a second one for each
		// reading takes a fifth of all that sampling takes, from the jobs of this node.
		runtime.GOMAXPROCS(1)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50) // few bytes are allocated for each sample; memory is the jobs'
	}
	unhurried()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := command().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	if v, ok := errors.AsType[doctor.Verdict](err); ok {
		os.Exit(int(v)) // the page has said it
	}
	fmt.Fprintln(os.Stderr, "pitchpipe-exporter:", err)
	os.Exit(1)
}

func command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:           "pitchpipe-exporter",
		Short:         "Samples the jobs of this node and serves them to the controller and to Prometheus",
		Args:          cobra.NoArgs,
		Version:       release(),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			err := o.check()
			o.root = o.root.Below(o.rootfs)
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	f := cmd.PersistentFlags()
	f.StringVar(&o.serving.Socket, "socket", api.DefaultSocket, "Unix socket for jobs, samples, progress and metrics")
	f.StringVar(&o.serving.Metrics, "web.listen-address", "127.0.0.1:9820", "address for /metrics, on loopback unless --web.config.file is given; empty = none")
	f.StringVar(&o.serving.WebConfig, "web.config.file", "", "file with TLS and basic auth for --web.listen-address, which need not be loopback then, in the form of all exporters of Prometheus (exporter-toolkit); callers from other machines see the node, and the jobs with --web.jobs=all")
	f.StringVar(&o.jobs, "web.jobs", "own", "whose jobs /metrics shows to users of this machine: own (each sees their own, root and --api.readers, such as the account of a Prometheus, see all) or all (everybody sees those of all users)")
	f.StringSliceVar(&o.readers, "api.readers", nil, "accounts besides root that see the jobs of all users on the socket and on /metrics, and report on their behalf, such as the site's controller: names in /etc/passwd, or numbers")
	f.StringVar(&o.serving.Remote.Address, "api.listen-address", "", "HOST:PORT on which jobs, samples and metrics are served to other machines, and progress is taken on behalf of jobs, over TLS with certificates on both sides; empty = none")
	f.StringVar(&o.serving.Remote.Certs.Cert, "api.cert", "", "PEM file of the exporter's certificate for that address; read again when it changes, as the next two")
	f.StringVar(&o.serving.Remote.Certs.Key, "api.key", "", "PEM file of its private key, which others must not be able to read")
	f.StringVar(&o.serving.Remote.Certs.CA, "api.client-ca", "", "PEM file of the authorities that callers' certificates have to come from")
	f.StringSliceVar(&o.serving.Remote.Clients, "api.clients", nil, "callers that see the jobs of all users over TLS, and report on their behalf: common names or DNS names of their certificates")
	f.StringSliceVar(&o.serving.Remote.Scrapers, "api.scrapers", nil, "callers that read the metrics over TLS, of all users' jobs, and may do nothing else, such as a Prometheus: common names or DNS names of their certificates")
	f.StringVar(&o.rootfs, "path.rootfs", "/", "where the root of the host is mounted; procfs and sysfs are proc and sys below it")
	f.StringVar(&o.root.ProcFS, "path.procfs", "", "where procfs is mounted; empty = proc below --path.rootfs")
	f.StringVar(&o.root.SysFS, "path.sysfs", "", "where sysfs is mounted; empty = sys below --path.rootfs")
	f.StringVar(&o.root.CgroupFS, "path.cgroupfs", "", "where the cgroup hierarchies are mounted; empty = fs/cgroup below --path.sysfs")
	f.StringVar(&o.environ, "attrib.environ", "own", "whose environments may name a job (PITCHPIPE_JOB_ID) where it has no cgroup: own (processes of the exporter's user), any (everybody can name any job) or off")
	f.BoolVar(&o.leaf, "perf.leaf", false, "on hosts with v1 cgroups, move each scheduler job to its own cgroup below pitchpipe-perf, only in the tree that perf reads (v1's perf_event, else v2), so that perf events are counted")
	f.StringSliceVar(&o.events, "perf.events", []string{"basic"}, "perf events that are counted for each job besides the software events: presets (software = no more, basic, memory, pipetune), names of perf list, PMU/EVENT/ or SYSTEM:TRACEPOINT, separated by commas; what the node lacks is left out, and doctor says why")
	f.DurationVar(&o.sampling.Interval, "sampling.interval", time.Second, "time between samples")
	f.DurationVar(&o.sampling.Discover, "sampling.discover", 250*time.Millisecond, "time between looks for new jobs")
	f.IntVar(&o.kept.Samples, "sampling.ring", 1800, "samples kept of each attempt of a job; fewer where there are more than 128 attempts")
	f.DurationVar(&o.kept.Keep, "sampling.keep", 15*time.Minute, "how long an ended attempt is kept")
	f.StringVar(&o.budgets, "budget.dir", "/run/pitchpipe/budgets", "folder in which an administrator or a prolog writes what jobs may use: a file MANAGER/ID such as slurm/42 with joules=2e6 seconds=14400, which only root and the exporter's user can write; empty = nowhere")
	f.StringVar(&o.state, "state.file", "", "where jobs' joules and last values are kept for the next exporter; empty = nowhere")
	f.Float64Var(&o.model.Idle, "energy.model.idle-watts", 0, "idle watts of the node, for modelled energy and the idle part of measured; 0 = 20 + 1.5 per core")
	f.Float64Var(&o.model.Max, "energy.model.max-watts", 0, "watts with all cores busy, for modelled energy; 0 = 20 + 7.5 per core")
	f.StringArrayVar(&o.sensors, "energy.hwmon", nil, "a sensor of the board that counts where there is no RAPL: CHIP[/LABEL]=node, package, package:N or ignore, such as ina3221/VDD_IN=node; repeatable, overrides the built-in rules (exporter/collector/energy/SENSORS.md)")
	f.StringVar(&o.gpu.helper, "gpu.helper", "", "program that asks NVIDIA's library; empty = pitchpipe-gpu next to this program or on PATH")
	f.StringVar(&o.gpu.smi, "gpu.nvidia-smi", "", "program to read if --gpu.helper gives nothing; empty = nvidia-smi on PATH")
	f.StringVar(&o.level, "log.level", "info", "debug, info, warn or error")
	cmd.AddCommand(doctorCommand(&o))
	return cmd
}

// version is stamped by the build: -X main.version=…
var version = ""

func release() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// timerSlack is how late the kernel may wake a thread of this program, so that it wakes it
// less often. Samples are a second apart and may be as late.
const timerSlack = time.Millisecond

// unhurried lets the kernel wake this program's threads later than the 50 µs of others.
// One of them, the Go runtime's own, looks after the rest at least that often while they
// work, which takes a sixth of all that sampling takes. Without CAP_SYS_NICE it cannot be
// changed from inside, and the service's TimerSlackNSec= does it; threads that come later
// are as those from which they come.
func unhurried() {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	slack := []byte(strconv.FormatInt(timerSlack.Nanoseconds(), 10))
	for _, t := range tasks {
		// A thread is found under its number as a process is. Where that is refused, it is
		// woken as often as any other.
		_ = os.WriteFile(filepath.Join("/proc", t.Name(), "timerslack_ns"), slack, 0)
	}
}
