package command

import (
	"context"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"pitchpipe/driver/local"
	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/progress"
)

// listen runs inside a job as its user and reports its epochs.
func (a *app) listen() *cobra.Command {
	var socket, pattern, file string
	var offset int64
	var total int
	cmd := &cobra.Command{
		Use: "listen", Short: "Report a job's progress to the exporter, from inside the job",
		Long: "Reads the lines that a job writes and tells the node's exporter which epoch ended.\n" +
			"Schedulers start it inside the job as the job's user; a job may start it by itself too.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			re, err := regexp.Compile(pattern)
			if err != nil {
				return fmt.Errorf("%w pattern: %w", errInvalid, err)
			}
			client := api.NewClient(socket)
			defer client.Close()
			cfg := progress.Config{Path: file, Offset: offset, Pattern: re, Total: total}
			return progress.Follow(cmd.Context(), cfg, func(ctx context.Context, r api.Report) error {
				return client.Report(ctx, r) // Follow tries again: a missing exporter may come back
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&socket, "socket", api.DefaultSocket, "the exporter's socket")
	f.StringVar(&pattern, "pattern", "", "regular expression with groups epoch, total, loss, quality")
	f.StringVar(&file, "file", "", "file to read")
	f.Int64Var(&offset, "offset", 0, "byte to begin at")
	f.IntVar(&total, "total", 0, "epochs in all, where no line says it")
	return cmd
}

// supervise is started by the embedded scheduler, never by hand.
func (a *app) supervise() *cobra.Command {
	return &cobra.Command{
		Use: "supervise", Short: "Run one attempt of a job (started by the local scheduler)", Hidden: true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if code := local.Supervise(cmd.Context(), args); code != 0 {
				return fmt.Errorf("%w: supervisor status %d", errShown, code)
			}
			return nil
		},
	}
}
