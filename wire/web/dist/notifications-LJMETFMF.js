import{a as o,b as r}from"./chunk-QEHYOGEG.js";import"./chunk-7GZT4PAG.js";import"./chunk-HQOLZQTW.js";import"./chunk-LXF7FFQF.js";export{r as NotificationFields,o as Notifications};
