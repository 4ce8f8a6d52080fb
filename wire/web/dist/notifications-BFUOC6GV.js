import{a as o,b as r}from"./chunk-3LWVSOIN.js";import"./chunk-BPNQFZH4.js";import"./chunk-ZNO2NVBG.js";import"./chunk-V6YQS35U.js";export{r as NotificationFields,o as Notifications};
