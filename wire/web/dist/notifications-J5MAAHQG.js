import{a as o,b as r}from"./chunk-JW3DXB7Z.js";import"./chunk-ANABGZUR.js";import"./chunk-NRQBLXPL.js";export{r as NotificationFields,o as Notifications};
