//! An agent on tokio: a stream of chunks is stored while it arrives, a follower prints what is stored, and no call blocks
//! the runtime.
//!
//!     cargo run --example async_agent --features async
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use sessionlog::{Append, EventKind, NewEvent, NewSession, Seq, Session, Store, Stream};
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::in_memory()?; // or Store::open("sessions")?
    let session = store.create(NewSession::new())?;
    let follower = tokio::spawn(print_chunks(session.clone()));

    append(&session, NewEvent::turn_start("t1")).await?;
    append(&session, NewEvent::user_message("Count to ten.")).await?;
    append(&session, NewEvent::step_start("s1", "t1")).await?;
    let mut tokens = model();
    let (mut text, mut stored) = (String::new(), Vec::new());
    while let Some(token) = tokens.recv().await {
        text.push_str(&token);
        // Not awaited one by one: they are stored in this order, together where that is quicker.
        stored.push(session.append_async(Append::new(), [NewEvent::assistant_chunk(token.as_str())]));
    }
    for chunk in stored {
        chunk.await?;
    }
    let end = [NewEvent::assistant_message(text), NewEvent::step_end("s1"), NewEvent::turn_end("t1")];
    // Durable, with all before it, when this returns.
    let seqs = session.append_async(Append::new(), end).await?;
    println!("\nstored: {} events", seqs.end);
    follower.await??;
    store.close()?;
    Ok(())
}

async fn append(session: &Session, event: NewEvent) -> sessionlog::Result<Seq> {
    Ok(session.append_async(Append::new(), [event]).await?.start)
}

/// Hears of each event once, as soon as readers may see it, until the turn ends.
async fn print_chunks(session: Session) -> sessionlog::Result<()> {
    let mut events = session.follow_async(Seq::ZERO)?;
    while let Some(event) = poll_fn(|context| Pin::new(&mut events).poll_next(context)).await {
        match &event?.kind {
            EventKind::AssistantChunk { delta } => print!("{}", delta.to_str()),
            EventKind::TurnEnd { .. } => break,
            _ => {}
        }
    }
    Ok(())
}

/// What a model would send.
fn model() -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel(4);
    tokio::spawn(async move {
        for number in 1..=10 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if send.send(format!("{number} ")).await.is_err() {
                break;
            }
        }
    });
    receive
}
