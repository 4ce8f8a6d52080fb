import{a as o,b as r}from"./chunk-OPHYBSZ7.js";import"./chunk-VRN3DNFL.js";import"./chunk-NBMTKBVB.js";export{r as NotificationFields,o as Notifications};
