import{a as o}from"./chunk-JG4SAOON.js";import"./chunk-2MB2MPON.js";import"./chunk-6ND3UTRJ.js";import"./chunk-45JOR5LA.js";export{o as Privacy};
