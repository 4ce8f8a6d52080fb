import{a as o,b as r}from"./chunk-KP6DCMOO.js";import"./chunk-M4PESRK7.js";import"./chunk-YGMU7ZFH.js";export{r as NotificationFields,o as Notifications};
