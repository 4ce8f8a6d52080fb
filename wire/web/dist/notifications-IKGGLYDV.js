import{a as o,b as r}from"./chunk-RJSRZNWA.js";import"./chunk-RWCJYZIU.js";import"./chunk-CF4E6J5H.js";import"./chunk-IPXS7XWN.js";export{r as NotificationFields,o as Notifications};
