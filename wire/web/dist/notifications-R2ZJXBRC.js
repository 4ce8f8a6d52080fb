import{a as o,b as r}from"./chunk-G4LJYYNM.js";import"./chunk-OJP6EBS7.js";import"./chunk-LZLB66BT.js";import"./chunk-M6723UL7.js";export{r as NotificationFields,o as Notifications};
