package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/doctor"
	"pitchpipe/exporter/leaf"
	"pitchpipe/exporter/state"
)

// verdict is an error whose number is the exit status.
type verdict doctor.Verdict

func (v verdict) Error() string {
	if v == verdict(doctor.Ill) {
		return "the exporter cannot do its work here"
	}
	return "something can be mended"
}

func doctorCommand(o *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Tells what works on this node, what does not, why, and what mends it",
		Long: `Tells what works on this node, what does not, why, and what mends it.

It examines the node as an exporter with the same flags and the same user would,
beside one that runs, and changes nothing.

Exit status: 0 everything that this node has is in use; 1 the examination failed;
2 something is limited or denied, and what mends it is printed; 3 the exporter
cannot do its work here.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return examine(cmd.Context(), *o, cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print findings as JSON")
	return cmd
}

func examine(ctx context.Context, o options, w io.Writer, asJSON bool) error {
	facts, err := consult(ctx, o)
	if err != nil {
		return err
	}
	findings := doctor.Examine(facts)
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		err = enc.Encode(findings)
	} else {
		if !facts.Root {
			_, err = fmt.Fprintf(w, "Seen as user %d, with an exporter's rights as that user has them. The packaged service runs as root.\n\n", os.Geteuid())
		}
		err = errors.Join(err, doctor.Print(w, findings))
	}
	if err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	if v := doctor.Judge(findings); v != doctor.Healthy {
		return verdict(v)
	}
	return nil
}

func consult(ctx context.Context, o options) (doctor.Facts, error) {
	with, err := inspect(ctx, o, slog.New(slog.DiscardHandler))
	if err != nil {
		return doctor.Facts{}, err
	}
	defer func() { _ = with.energy.Close() }() // of this examination alone
	f := doctor.Facts{
		Node: with.about, Root: os.Geteuid() == 0, Leaf: o.leaf, Socket: o.socket,
		OwnPids: o.root.Self() != os.Getpid(),
	}
	if f.State = o.state; f.State != "" {
		if _, f.StateErr = state.Load(o.state); f.StateErr == nil {
			f.StateErr = writable(filepath.Dir(o.state))
		}
	}
	for i, s := range f.Node.Sources {
		if with.hung[s.Name] != nil {
			f.Node.Sources[i].Silent, f.Node.Sources[i].Reason = true, fmt.Sprintf("does not answer for %v: a read of it hangs", collector.Patience)
		}
	}
	possible, _, silent := collector.Ask("leaves", func() error { return leaf.Possible(o.root) })
	f.Hybrid = silent == nil && !errors.Is(possible, leaf.ErrNowhere)
	if f.Program, err = os.Executable(); err != nil {
		f.Program = "pitchpipe-exporter"
	}
	for _, job := range found(ctx, with) {
		if !slices.Contains(f.Managers, job.Key.Manager) {
			f.Managers = append(f.Managers, job.Key.Manager)
		}
	}
	ask, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client := api.NewClient(o.socket)
	defer client.Close()
	if _, f.SocketErr = client.Node(ask); f.SocketErr != nil {
		f.Listening = writable(filepath.Dir(o.socket))
	}
	cards, err := filepath.Glob("/dev/nvidia[0-9]*")
	f.NVIDIA = err == nil && len(cards) > 0
	return f, nil
}

// found are the jobs of this moment, none where looking for them hangs.
func found(ctx context.Context, with equipment) []attrib.Found {
	if with.hung["attrib"] != nil {
		return nil
	}
	jobs, _, err := collector.Ask("attrib", func() []attrib.Found { return with.scanner.Scan(ctx) })
	if err != nil {
		return nil
	}
	return jobs
}

// writable tells whether a directory could be made, or written to where it is there.
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
