// The time in whole seconds, as a value that views follow while the tab is seen.
import { useEffect, useState } from "react";

export function useSeconds(every = 1): number {
  const [now, setNow] = useState(() => Math.floor(Date.now() / 1000) * 1000);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Math.floor(Date.now() / 1000) * 1000);
    }, every * 1000);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}
