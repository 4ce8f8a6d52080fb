import{a as o,b as r}from"./chunk-526ZWEJQ.js";import"./chunk-W7QKDDLG.js";import"./chunk-74UHNMBE.js";import"./chunk-HGMUO3WK.js";export{r as NotificationFields,o as Notifications};
