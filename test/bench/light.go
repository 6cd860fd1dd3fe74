package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// lightArg starts this program as a light executor: it speaks the stream, and says of every task at once that it has succeeded. So what is measured
// is the way there and back alone.
const lightArg = "light-executor"

// lightBeat is the time between two signs of life.
const lightBeat = 5 * time.Second

// beLight is a light executor until the daemon stops it or ctx is done. getenv tells who it is, as it tells retinue-executor.
func beLight(ctx context.Context, getenv func(string) string) error {
	id, err := strconv.ParseUint(getenv("RETINUE_EXECUTOR_ID"), 10, 64)
	if err != nil {
		return fmt.Errorf("reading RETINUE_EXECUTOR_ID: %w", err)
	}
	slots, err := strconv.ParseUint(getenv("RETINUE_SLOTS"), 10, 32)
	if err != nil {
		return fmt.Errorf("reading RETINUE_SLOTS: %w", err)
	}
	conn, err := grpc.NewClient(getenv("RETINUE_ADDRESS"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("preparing the connection: %w", err)
	}
	defer func() { _ = conn.Close() }()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+getenv("RETINUE_TOKEN"))
	parts, ctx := errgroup.WithContext(ctx)
	stream, err := apiv1.NewExecutorServiceClient(conn).Attach(ctx)
	if err != nil {
		return fmt.Errorf("calling the daemon: %w", err)
	}
	err = stream.Send(&apiv1.AttachRequest{Register: &apiv1.Register{
		Application: getenv("RETINUE_APPLICATION"), Namespace: getenv("RETINUE_NAMESPACE"), Executor: id,
		PodName: getenv("RETINUE_POD_NAME"), PodUid: getenv("RETINUE_POD_UID"), Slots: uint32(slots),
	}})
	if err != nil {
		return fmt.Errorf("registering: %w", err)
	}
	done := make(chan []*apiv1.Report, 16)
	parts.Go(func() error { return listen(ctx, stream, done) })
	parts.Go(func() error { return speak(ctx, stream, done) })
	if err := parts.Wait(); !errors.Is(err, errStopped) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// errStopped is the regular end.
var errStopped = errors.New("the daemon stopped this executor")

// listen makes a report of each launch.
func listen(ctx context.Context, stream apiv1.ExecutorService_AttachClient, done chan<- []*apiv1.Report) error {
	for {
		msg, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) || msg.GetStop() != nil:
			return errStopped
		case err != nil:
			return err
		case len(msg.GetLaunches()) == 0:
			continue
		}
		reports := make([]*apiv1.Report, len(msg.GetLaunches()))
		for i, l := range msg.GetLaunches() {
			reports[i] = &apiv1.Report{Task: l.GetTask(), Outcome: apiv1.Outcome_OUTCOME_SUCCEEDED}
		}
		select {
		case done <- reports:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// speak sends all that is done in one message, and a sign of life now and then.
func speak(ctx context.Context, stream apiv1.ExecutorService_AttachClient, done <-chan []*apiv1.Report) error {
	beat := time.NewTicker(lightBeat)
	defer beat.Stop()
	for {
		msg := &apiv1.AttachRequest{}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-beat.C:
			msg.Heartbeat = &apiv1.Heartbeat{}
		case msg.Reports = <-done:
		}
		for more := true; more; {
			select {
			case reports := <-done:
				msg.Reports = append(msg.Reports, reports...)
			default:
				more = false
			}
		}
		if err := stream.Send(msg); err != nil && !errors.Is(err, io.EOF) { // after io.EOF the reason is in what is received
			return err
		}
	}
}
