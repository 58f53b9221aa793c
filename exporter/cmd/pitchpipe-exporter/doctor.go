package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/doctor"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/exporter/sampler"
)

func doctorCommand(o *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Reports what works on this node, what does not, why, and what fixes it",
		Long: `Reports what works on this node, what does not, why, and what fixes it.

Where an exporter answers on --socket, that one is examined: its sources, its
rights and its flags. Where none does, or other flags are given, the node is
examined as an exporter with these flags and this shell's rights would find it,
beside one that runs. Nothing is changed.

Exit status: 0 everything that this node has is in use; 1 the examination failed;
2 something is limited or denied, and what mends it is printed; 3 the exporter
cannot do its work here.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return examine(cmd.Context(), *o, given(cmd), cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print findings as JSON")
	return cmd
}

// given reports whether flags ask for an examination with them, and not of the exporter that
// runs with its own.
func given(cmd *cobra.Command) bool {
	others := false
	cmd.Flags().Visit(func(f *pflag.Flag) {
		others = others || !slices.Contains([]string{"socket", "json", "log.level", "help"}, f.Name)
	})
	return others
}

func examine(ctx context.Context, o options, flags bool, w io.Writer, asJSON bool) error {
	facts, err := consult(ctx, o, flags)
	if err != nil {
		return err
	}
	findings := doctor.Examine(facts)
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		err = enc.Encode(findings)
	} else {
		_, err = fmt.Fprintf(w, "%s\n\n", doctor.Heading(facts))
		err = errors.Join(err, doctor.Print(w, findings))
	}
	if err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	if v := doctor.Judge(findings); v != doctor.Healthy {
		return v
	}
	return nil
}

func consult(ctx context.Context, o options, flags bool) (doctor.Facts, error) {
	ask, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client := api.NewClient(o.serving.Socket)
	defer client.Close()
	running, err := client.Node(ask)
	f := doctor.Facts{Socket: o.serving.Socket, SocketErr: err, Flags: flags}
	if err == nil && !flags && running.Exporter != nil {
		f.Node, f.Exporter, f.Running = running, *running.Exporter, true
		jobs, _ := client.Jobs(ask) // without them none is mentioned
		count(&f, jobs)
	} else if err := imagine(ctx, o, &f); err != nil {
		return doctor.Facts{}, err
	}
	if f.SocketErr != nil {
		f.Listening = writable(filepath.Dir(o.serving.Socket))
	}
	_, err = collector.Ask("perf cgroups", func() (hostfs.Hierarchy, error) { return perf.CgroupsNeeded(o.root) })
	f.Hybrid = !errors.Is(err, collector.ErrSilent) && !errors.Is(err, perf.ErrNoCgroupsNeeded)
	cards, err := filepath.Glob("/dev/nvidia[0-9]*")
	f.NVIDIA = err == nil && len(cards) > 0
	return f, nil
}

// imagine examines the node as an exporter of this shell would find it.
func imagine(ctx context.Context, o options, f *doctor.Facts) error {
	with, err := inspect(ctx, o, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { _ = with.energy.Meter.Close() }() // of this examination alone
	f.Node, f.Exporter = with.about, describeSelf(o)
	if o.state != "" {
		_, err := sampler.LoadState(o.state)
		if err == nil {
			err = writable(filepath.Dir(o.state))
		}
		if err != nil {
			f.Exporter.StateErr = err.Error()
		}
	}
	for i, s := range f.Node.Sources {
		if w := with.workers[s.Name]; w != nil && w.Stuck() != nil {
			f.Node.Sources[i].Silent, f.Node.Sources[i].Reason = true, fmt.Sprintf("does not answer for %v: a read of it hangs", collector.Patience)
		}
	}
	if with.workers["attrib"].Stuck() != nil {
		return nil
	}
	jobs, _ := collector.Ask("attrib", func() ([]attrib.Found, error) { return with.scanner.Scan(ctx), nil }) // none where it hangs
	tree, known := hostfs.PerfHierarchy(o.root.Hierarchies())
	for _, job := range jobs {
		add(f, job.Key.Manager, job.Key.ID, known && len(job.Dirs) > 0 && job.Dirs[tree.Name] == "")
	}
	return nil
}

// count looks which of the jobs that the exporter samples perf does not count.
func count(f *doctor.Facts, jobs []api.Job) {
	for _, job := range jobs {
		if !job.Ended {
			add(f, job.Manager, job.ID, job.Cgroup != "" && slices.ContainsFunc(job.Absent, func(s api.Source) bool { return s.Name == "perf" && s.Support == api.Unsupported }))
		}
	}
}

func add(f *doctor.Facts, manager, id string, uncounted bool) {
	if !slices.Contains(f.Managers, manager) {
		f.Managers = append(f.Managers, manager)
	}
	if uncounted {
		f.Uncounted = append(f.Uncounted, manager+"/"+id)
	}
}

// writable reports whether a directory could be made, or written to where it is there.
func writable(dir string) error {
	for {
		switch err := unix.Access(dir, unix.W_OK|unix.X_OK); {
		case err == nil:
			return nil
		case !errors.Is(err, unix.ENOENT) || dir == "/" || dir == ".":
			return fmt.Errorf("%s: %w", dir, err)
		}
		dir = filepath.Dir(dir)
	}
}
